package org.kquota.group;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.kquota.share.LedPartitions;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The quota groups of this broker. A request is in one at most: in that of its principal, which is authenticated, or else
 * in that of its client id, which any client can choose.
 */
public final class Groups {
    /** A user tag that begins so is a group's: Kafka sanitizes user names, so that no client can have it. */
    public static final String TAG_PREFIX = "<group>";
    public static final Groups NONE = new Groups(List.of(), new Members(), new Members());

    private static final int MAX_CACHED = 20_000;
    private static final int MAX_CACHED_LENGTH = 256;
    private static final Group NO_GROUP = new Group("", null, Map.of());

    private final Map<String, Group> byTag = new LinkedHashMap<>();
    private final Members principals;
    private final Members clientIds;
    private final ConcurrentHashMap<String, Group> clientIdCache = new ConcurrentHashMap<>();

    Groups(List<Group> groups, Members principals, Members clientIds) {
        groups.forEach(group -> byTag.put(group.meteredAs().user(), group));
        this.principals = principals;
        this.clientIds = clientIds;
    }

    /** The group of a principal, or null. Not cached here. */
    public Group ofPrincipal(KafkaPrincipal principal) {
        return principals.of(principal.toString());
    }

    /** The group of a client id, for a principal without one; or null. */
    public Group ofClientId(String clientId) {
        if (clientIds.isEmpty()) {
            return null;
        }
        Group group = clientIdCache.get(clientId);
        if (group == null) {
            group = clientIds.of(clientId);
            if (group == null) {
                group = NO_GROUP;
            }
            if (clientId.length() <= MAX_CACHED_LENGTH) {
                if (clientIdCache.size() >= MAX_CACHED) {
                    clientIdCache.clear();
                }
                clientIdCache.put(clientId, group);
            }
        }
        return group == NO_GROUP ? null : group;
    }

    /** How many client ids are remembered with their groups. */
    int rememberedClientIds() {
        return clientIdCache.size();
    }

    /** The group with this user tag, or null if it is no group's. */
    public Group ofTag(String user) {
        return user.startsWith(TAG_PREFIX) ? byTag.get(user) : null;
    }

    /** All of them, in the order of their configuration. */
    public Collection<Group> all() {
        return byTag.values();
    }

    /** Takes over the counts of the groups of the same names, and the leaders of partitions. To be called before requests come. */
    public void takeOver(Groups before, LedPartitions partitions) {
        for (Group group : byTag.values()) {
            Group namesake = before.byTag.get(group.meteredAs().user());
            if (namesake != null) {
                group.countOnFrom(namesake);
            }
        }
        update(partitions);
    }

    /** Takes over the leaders of partitions; returns whether a limit has changed. */
    public boolean update(LedPartitions partitions) {
        boolean changed = false;
        for (Group group : byTag.values()) {
            changed |= group.update(partitions);
        }
        return changed;
    }
}
