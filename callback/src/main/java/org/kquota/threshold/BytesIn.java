package org.kquota.threshold;

import java.util.Set;

/** The observed rates of what clients send that reaches the log: one-minute moving averages, in bytes per second. */
public interface BytesIn {
    /** Of all topics together. */
    double total();

    /** Of one topic; 0 while nothing has come in. */
    double of(String topic);

    /** The others are asked for seldom, or are gone: their entries may be dropped. */
    default void keep(Set<String> topics) {
    }
}
