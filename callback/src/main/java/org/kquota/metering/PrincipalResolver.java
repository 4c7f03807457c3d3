package org.kquota.metering;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.kquota.group.Group;
import org.kquota.group.Groups;
import org.kquota.quota.ExemptPrincipals;
import org.kquota.quota.KafkaNames;
import org.kquota.quota.Tags;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Resolves a principal once, so that a request does not pay for it. */
final class PrincipalResolver {
    private static final int MAX_CACHED = 20_000;

    /** A principal, its Type:name, its sanitized name, its tags if it is exempt, or null, and its quota group, or null. */
    record Resolved(KafkaPrincipal principal, String name, String sanitizedUser, Map<String, String> exemptTags, Group group) {
    }

    private final ExemptPrincipals exempt;
    private final Groups groups;
    private final ConcurrentHashMap<KafkaPrincipal, Resolved> cache = new ConcurrentHashMap<>();

    PrincipalResolver(ExemptPrincipals exempt, Groups groups) {
        this.exempt = exempt;
        this.groups = groups;
    }

    Resolved of(KafkaPrincipal principal) {
        Resolved resolved = cache.get(principal);
        if (resolved == null) {
            resolved = resolve(principal);
            if (cache.size() >= MAX_CACHED) {
                cache.clear();
            }
            cache.put(principal, resolved);
        }
        return resolved;
    }

    private Resolved resolve(KafkaPrincipal principal) {
        String user = KafkaNames.sanitized(principal.getName());
        boolean isUser = KafkaPrincipal.USER_TYPE.equals(principal.getPrincipalType());
        return new Resolved(principal, principal.toString(), user, exemptTags(principal, isUser ? user : KafkaNames.sanitized(principal.toString())),
            groups.ofPrincipal(principal));
    }

    private Map<String, String> exemptTags(KafkaPrincipal principal, String sanitized) {
        if (exempt.isAgent(principal)) {
            return Tags.agent(sanitized);
        }
        return exempt.contains(principal) ? Tags.exempt(sanitized) : null;
    }
}
