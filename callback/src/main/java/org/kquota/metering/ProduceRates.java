package org.kquota.metering;

import java.util.Map;
import java.util.OptionalDouble;

/** The broker's own produce rates. */
public interface ProduceRates {
    /** The observed rate of these tags in bytes per second, or nothing if the broker keeps none. */
    OptionalDouble bytesPerSecond(Map<String, String> tags);

    /** The rate of these tags, for a caller that asks for it again and again. */
    default Rate of(Map<String, String> tags) {
        return () -> bytesPerSecond(tags);
    }

    /** The rate of a set of tags. */
    @FunctionalInterface
    interface Rate {
        /** As {@link ProduceRates#bytesPerSecond}. */
        OptionalDouble bytesPerSecond();
    }
}
