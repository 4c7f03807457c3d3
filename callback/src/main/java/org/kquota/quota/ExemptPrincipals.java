package org.kquota.quota;

import org.apache.kafka.common.security.auth.KafkaPrincipal;

import java.util.Set;
import java.util.TreeSet;

/**
 * The principals that are never held. Matched as an exact type and name of an authenticated principal; a client id,
 * which anyone can forge, never exempts, and neither does being anonymous.
 */
public final class ExemptPrincipals {
    /** The broker property that lists them. */
    public static final String PROPERTY = "kquota.exempt.principals";
    private static final String ALLOWED =
        "allowed is a list of principals as Type:name, separated by semicolons, for example User:CN=agent,O=x;User:admin";

    private final Set<String> principals;

    private ExemptPrincipals(Set<String> principals) {
        this.principals = principals;
    }

    /**
     * @param text principals as Type:name, separated by semicolons, because distinguished names hold commas
     * @throws IllegalArgumentException if none is named, one has no type or no name, or one is User:ANONYMOUS
     */
    public static ExemptPrincipals parse(String text) {
        Set<String> principals = new TreeSet<>();
        for (String part : (text == null ? "" : text).split(";")) {
            String principal = part.strip();
            if (principal.isEmpty()) {
                continue;
            }
            int colon = principal.indexOf(':');
            if (colon <= 0 || colon == principal.length() - 1) {
                throw new IllegalArgumentException("'" + principal + "' has no type or no name; " + ALLOWED);
            }
            if (principal.equals(KafkaPrincipal.ANONYMOUS.toString())) {
                throw new IllegalArgumentException(principal + " is every client without authentication and cannot be exempt; " + ALLOWED);
            }
            principals.add(principal);
        }
        if (principals.isEmpty()) {
            throw new IllegalArgumentException(
                "no principal is exempt, so the agent would be held by its own pause and never end it; " + ALLOWED);
        }
        return new ExemptPrincipals(principals);
    }

    public boolean contains(KafkaPrincipal principal) {
        return !KafkaPrincipal.ANONYMOUS.equals(principal) && principals.contains(principal.toString());
    }

    /** Whether this Type:name is in the list. */
    public boolean names(String principal) {
        return principals.contains(principal);
    }

    @Override
    public String toString() {
        return String.join(";", principals);
    }
}
