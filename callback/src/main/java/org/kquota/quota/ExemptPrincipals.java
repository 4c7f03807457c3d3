package org.kquota.quota;

import org.apache.kafka.common.security.auth.KafkaPrincipal;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * The principals that are never held, and those of them that are agents', which have a produce quota all the same. Matched by type and name of an authenticated
 * principal, exactly or by a pattern of a distinguished name; a client id, which anyone can forge, never exempts, and neither does being anonymous.
 */
public final class ExemptPrincipals {
    /** The broker property that lists them. */
    public static final String PROPERTY = "kquota.exempt.principals";
    private static final int MAX_PATTERNS = 32;

    private final Set<String> entries;
    private final Set<String> principals = new HashSet<>();
    private final List<ExemptEntry> patterns = new ArrayList<>();
    /** Null where there are none. */
    private final ExemptPrincipals agents;
    private final double agentQuota;

    private ExemptPrincipals(Set<String> entries) {
        this(entries, null, Double.POSITIVE_INFINITY);
    }

    private ExemptPrincipals(Set<String> entries, ExemptPrincipals agents, double agentQuota) {
        this.entries = entries;
        this.agents = agents;
        this.agentQuota = agentQuota;
        for (String text : entries) {
            ExemptEntry entry = ExemptEntry.parse(text);
            if (entry.isPattern()) {
                patterns.add(entry);
            } else if (entry.before().equals(KafkaPrincipal.ANONYMOUS.toString())) {
                throw new IllegalArgumentException(text + " is every client without authentication and cannot be exempt; " + ExemptEntry.ALLOWED);
            } else {
                principals.add(entry.before());
            }
        }
        if (patterns.size() > MAX_PATTERNS) {
            throw new IllegalArgumentException("there are " + patterns.size() + " patterns; allowed are at most " + MAX_PATTERNS);
        }
    }

    /**
     * @param text principals as Type:name, and patterns of them, separated by semicolons, because distinguished names hold commas
     * @throws IllegalArgumentException if none is named, one has no type or no name, one is User:ANONYMOUS, or a pattern is not allowed
     */
    public static ExemptPrincipals parse(String text) {
        Set<String> entries = new TreeSet<>();
        for (String part : (text == null ? "" : text).split(";")) {
            String entry = part.strip();
            if (!entry.isEmpty()) {
                entries.add(entry);
            }
        }
        if (entries.isEmpty()) {
            throw new IllegalArgumentException(
                "no principal is exempt, so the agent would be held by its own pause and never end it; " + ExemptEntry.ALLOWED);
        }
        return new ExemptPrincipals(entries);
    }

    /**
     * The same, where each of these has a produce quota on a broker as far as it is exempt.
     *
     * @param text           in the same form; none if it is blank
     * @param bytesPerSecond the quota of each of them
     * @throws IllegalArgumentException if one is not allowed
     */
    public ExemptPrincipals withAgents(String text, double bytesPerSecond) {
        return text.isBlank() ? new ExemptPrincipals(entries) : new ExemptPrincipals(entries, parse(text), bytesPerSecond);
    }

    /** Whether it is exempt and an agent's. */
    public boolean isAgent(KafkaPrincipal principal) {
        return agents != null && agents.contains(principal) && contains(principal);
    }

    /** The produce quota of each agent's principal, bytes per second. */
    public double agentQuota() {
        return agentQuota;
    }

    public boolean contains(KafkaPrincipal principal) {
        return !KafkaPrincipal.ANONYMOUS.equals(principal) && names(principal.toString());
    }

    /** Whether this Type:name is in the list, or matches a pattern there. */
    public boolean names(String principal) {
        if (principals.contains(principal)) {
            return true;
        }
        for (ExemptEntry pattern : patterns) {
            if (pattern.matches(principal)) {
                return true;
            }
        }
        return false;
    }

    /** The number of principals and patterns. */
    public int size() {
        return entries.size();
    }

    @Override
    public String toString() {
        return String.join(";", entries);
    }
}
