package org.kquota.admission;

import java.util.Map;

/** The broker's own counters of what has been appended to each topic of clients. */
public interface TopicBytes {
    /** Those of the topics that this broker has appended to, by name; the same object until they have been looked for again. */
    Map<String, Counter> topics();

    /** The counter of one topic; one that begins again is not equal to the one before. */
    interface Counter {
        /** Bytes since it began. */
        long bytes();

        /** Its rate while it was not held, a moving average over ten seconds as a client's baseline, bytes per second. */
        double rate();
    }
}
