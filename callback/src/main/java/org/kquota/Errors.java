package org.kquota;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;

/** What went wrong, counted by kind with the last message. Takes no lock, so that request threads can count. */
final class Errors {
    /** The kinds, so that what is kept is bounded. */
    enum Kind {
        /** An exception on a request thread; the last safe value was used. */
        REQUEST,
        /** A quota change that could not be taken over. */
        QUOTA_UPDATE,
        /** The decision became lost. */
        DECISION,
        /** A step of the governor. */
        GOVERNOR,
        /** The fence; the request went on, held by the governor. */
        FENCE,
        /** A version of the thresholds file that was refused, or a fault in judging by it. */
        THRESHOLDS,
        /** Writing the applied-state file. */
        APPLIED_FILE,
        /** Reading the broker's offline log dirs. */
        LOG_DIRS,
        /** Reading the broker's metrics of clients. */
        CLIENTS,
        /** Tiered storage is held by a pause. */
        TIERED_STORAGE,
        /** Cluster metadata from the broker, or that it does not come. */
        METADATA
    }

    /** How often, and the last message; null before the first. */
    record Tally(long count, String lastMessage) {
    }

    private static final int MAX_MESSAGE = 300;
    private static final Tally NONE = new Tally(0, null);

    private final Map<Kind, AtomicReference<Tally>> tallies = new EnumMap<>(Kind.class);

    Errors() {
        for (Kind kind : Kind.values()) {
            tallies.put(kind, new AtomicReference<>(NONE));
        }
    }

    void count(Kind kind, String message) {
        String shown = message == null || message.length() <= MAX_MESSAGE ? message : message.substring(0, MAX_MESSAGE) + "…";
        tallies.get(kind).updateAndGet(tally -> new Tally(tally.count() + 1, shown));
    }

    void count(Kind kind, Throwable thrown) {
        count(kind, thrown.toString());
    }

    Tally tally(Kind kind) {
        return tallies.get(kind).get();
    }

    long total() {
        return tallies.values().stream().mapToLong(tally -> tally.get().count()).sum();
    }
}
