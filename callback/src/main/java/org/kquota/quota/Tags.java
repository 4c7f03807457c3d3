package org.kquota.quota;

import java.util.Map;

/**
 * The metric tags of a quota. Kafka names a sensor by the tags' values in their order, so the order is fixed: user,
 * client-id. A user in angle brackets is one of ours: Kafka sanitizes user names, so that no client can have it.
 */
public final class Tags {
    public static final String USER = "user";
    public static final String CLIENT_ID = "client-id";

    /** Shared by all clients that are held in PAUSE. */
    public static final Map<String, String> PAUSED = of("<paused>", "");
    /** Shared by the clients without a baseline in THROTTLE. */
    public static final Map<String, String> NEWCOMERS = of("<newcomers>", "");
    /** Shared by the clients without a quota beyond the number of tag sets that are kept apart. */
    public static final Map<String, String> OVERFLOW = of("<overflow>", "");

    private static final String EXEMPT_PREFIX = "<exempt>";
    private static final String AGENT_PREFIX = "<agent>";

    private Tags() {
    }

    public static Map<String, String> of(String user, String clientId) {
        return new MetricTags(user, clientId);
    }

    /** The tags of an exempt principal: its own whatever its client id, and apart from every tag set with a quota. */
    public static Map<String, String> exempt(String sanitizedPrincipal) {
        return of(EXEMPT_PREFIX + sanitizedPrincipal, "");
    }

    /** The tags of an exempt principal that is an agent's, and so has a produce quota. */
    public static Map<String, String> agent(String sanitizedPrincipal) {
        return of(AGENT_PREFIX + sanitizedPrincipal, "");
    }

    /** Whether they are those of an exempt principal, an agent's included. */
    public static boolean isExempt(Map<String, String> tags) {
        String user = tags.get(USER);
        return user != null && (user.startsWith(EXEMPT_PREFIX) || user.startsWith(AGENT_PREFIX));
    }

    public static boolean isAgent(Map<String, String> tags) {
        String user = tags.get(USER);
        return user != null && user.startsWith(AGENT_PREFIX);
    }
}
