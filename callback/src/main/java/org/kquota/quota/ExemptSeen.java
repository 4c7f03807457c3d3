package org.kquota.quota;

import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Which exempt principals have been seen lately, and under which client ids: the proof for the local agent that the
 * broker does not hold it. Bounded; the client ids seen longest ago give way.
 */
public final class ExemptSeen {
    /** Patterns may exempt any number; all of them begin again when there are this many. */
    private static final int MAX_PRINCIPALS = 4096;
    private static final int MAX_CLIENT_IDS = 256;
    private static final int MAX_LENGTH = 256;

    private final Map<String, Map<String, AtomicInteger>> lastSeen = new ConcurrentHashMap<>();

    /** The same without the principals that are exempt no more. */
    public ExemptSeen of(ExemptPrincipals exempt) {
        ExemptSeen still = new ExemptSeen();
        lastSeen.forEach((principal, clientIds) -> {
            if (exempt.names(principal)) {
                still.lastSeen.put(principal, clientIds);
            }
        });
        return still;
    }

    /** Notes a request of an exempt principal at that second; never waits for another thread unless the client id is new. */
    public void note(String principal, String fullClientId, int seconds) {
        String clientId = fullClientId.length() <= MAX_LENGTH ? fullClientId : fullClientId.substring(0, MAX_LENGTH);
        Map<String, AtomicInteger> clientIds = lastSeen.get(principal);
        if (clientIds == null) {
            if (lastSeen.size() >= MAX_PRINCIPALS) {
                lastSeen.clear();
            }
            clientIds = lastSeen.computeIfAbsent(principal, key -> new ConcurrentHashMap<>());
        }
        AtomicInteger last = clientIds.get(clientId);
        if (last != null) {
            last.setOpaque(seconds);
            return;
        }
        if (clientIds.size() >= MAX_CLIENT_IDS) {
            clientIds.entrySet().stream().min(Comparator.comparingInt(entry -> entry.getValue().get()))
                .map(Map.Entry::getKey).ifPresent(clientIds::remove);
        }
        clientIds.put(clientId, new AtomicInteger(seconds));
    }

    /** Forgets the client ids that were not seen since that second, and the principals without any. A request that comes meanwhile may be missed. */
    public void forgetUnseenSince(int seconds) {
        lastSeen.values().removeIf(clientIds -> {
            clientIds.values().removeIf(last -> last.get() < seconds);
            return clientIds.isEmpty();
        });
    }

    /** The principals seen lately, in order of their names. */
    public List<Seen> list() {
        return new TreeMap<>(lastSeen).entrySet().stream()
            .map(entry -> new Seen(entry.getKey(), seconds(entry.getValue())))
            .toList();
    }

    private static Map<String, Integer> seconds(Map<String, AtomicInteger> clientIds) {
        Map<String, Integer> seconds = new TreeMap<>();
        clientIds.forEach((clientId, last) -> seconds.put(clientId, last.get()));
        return seconds;
    }

    /** An exempt principal, and its client ids with the second each was last seen. */
    public record Seen(String principal, Map<String, Integer> lastSeenSeconds) {
        public int latestSeconds() {
            return lastSeenSeconds.values().stream().mapToInt(Integer::intValue).max().orElse(0);
        }
    }
}
