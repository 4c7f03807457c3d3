package org.kquota.govern;

import java.util.Map;
import java.util.OptionalDouble;

/** The broker's own produce rates. */
public interface ProduceRates {
    /** The observed rate of these tags in bytes per second, or nothing if the broker keeps none. */
    OptionalDouble bytesPerSecond(Map<String, String> tags);

    /** Forgets what was cached for tags that are no longer in use. */
    default void forget(Map<String, String> tags) {
    }
}
