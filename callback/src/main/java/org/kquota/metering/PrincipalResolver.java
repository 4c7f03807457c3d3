package org.kquota.metering;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Sanitizer;
import org.kquota.group.Group;
import org.kquota.group.Groups;
import org.kquota.quota.ExemptPrincipals;
import org.kquota.quota.Tags;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** What is worked out once per principal, so that a request does not pay for it. */
final class PrincipalResolver {
    private static final int MAX_CACHED = 20_000;

    /** A principal, its sanitized name, its tags if it is exempt, or null, and its quota group, or null. */
    record Client(KafkaPrincipal kafkaPrincipal, String principal, String sanitizedUser, Map<String, String> exemptTags, Group group) {
    }

    private final ExemptPrincipals exempt;
    private final Groups groups;
    private final ConcurrentHashMap<KafkaPrincipal, Client> cache = new ConcurrentHashMap<>();

    PrincipalResolver(ExemptPrincipals exempt, Groups groups) {
        this.exempt = exempt;
        this.groups = groups;
    }

    Client of(KafkaPrincipal principal) {
        Client client = cache.get(principal);
        if (client == null) {
            client = resolve(principal);
            if (cache.size() >= MAX_CACHED) {
                cache.clear();
            }
            cache.put(principal, client);
        }
        return client;
    }

    private Client resolve(KafkaPrincipal principal) {
        String user = Sanitizer.sanitize(principal.getName());
        boolean isUser = KafkaPrincipal.USER_TYPE.equals(principal.getPrincipalType());
        return new Client(principal, principal.toString(), user,
            exempt.contains(principal) ? Tags.exempt(isUser ? user : Sanitizer.sanitize(principal.toString())) : null,
            groups.ofPrincipal(principal));
    }
}
