package org.kquota.quota;

import java.util.HashMap;
import java.util.Map;
import java.util.OptionalDouble;

/**
 * Quotas for client ids from broker properties, in the form of KIP-13: a default for every client id, and overrides
 * such as clientA:4M,clientB:10M. Immutable.
 */
public final class StaticQuotas {
    /** The allowed forms of overrides, for error messages. */
    public static final String OVERRIDES_ALLOWED =
        "allowed is a list of client-id:rate, separated by commas, each client id once, such as clientA:4M,clientB:10M";
    public static final StaticQuotas NONE = new StaticQuotas(null, Map.of());

    private final Double byDefault;
    private final Map<String, Double> overrides;

    private StaticQuotas(Double byDefault, Map<String, Double> overrides) {
        this.byDefault = byDefault;
        this.overrides = overrides;
    }

    public static StaticQuotas of(OptionalDouble byDefault, Map<String, Double> overrides) {
        return new StaticQuotas(byDefault.isPresent() ? (Double) byDefault.getAsDouble() : null, Map.copyOf(overrides));
    }

    /**
     * The default rate in bytes per second; nothing where the text is empty.
     *
     * @throws IllegalArgumentException if it is no rate
     */
    public static OptionalDouble parseDefault(String text) {
        return text.isBlank() ? OptionalDouble.empty() : OptionalDouble.of(ByteRate.parse(text));
    }

    /**
     * Rates in bytes per second by client id. An empty client id before the colon stands for clients without one.
     *
     * @throws IllegalArgumentException if an entry has no colon or no rate, or a client id is there twice
     */
    public static Map<String, Double> parseOverrides(String text) {
        Map<String, Double> overrides = new HashMap<>();
        // The document writes the list in quotation marks, which a properties file keeps.
        String list = text.strip().replaceAll("^\"(.*)\"$", "$1");
        for (String entry : list.isBlank() ? new String[0] : list.split(",", -1)) {
            // Client ids may hold colons, rates may not.
            int colon = entry.lastIndexOf(':');
            if (colon < 0) {
                throw new IllegalArgumentException("'" + entry.strip() + "' has no rate; " + OVERRIDES_ALLOWED);
            }
            String clientId = entry.substring(0, colon).strip();
            if (overrides.put(clientId, ByteRate.parse(entry.substring(colon + 1))) != null) {
                throw new IllegalArgumentException("client id '" + clientId + "' is there twice; " + OVERRIDES_ALLOWED);
            }
        }
        return overrides;
    }

    /** The quota of a client id, which may be the empty one, in bytes per second, or null if there is none. */
    public Double limit(String clientId) {
        return overrides.getOrDefault(clientId, byDefault);
    }

    /** The client ids with an override, and their rates in bytes per second. */
    public Map<String, Double> overrides() {
        return overrides;
    }

    public boolean isEmpty() {
        return byDefault == null && overrides.isEmpty();
    }
}
