package org.kquota.error;

import static org.kquota.error.PluginLog.LOG;

import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Errors, counted by kind with the last message. Takes no lock, so that request threads can count; faults are logged by another
 * thread, at most one of each kind in a minute.
 */
public final class Errors {
    /** The kinds, which bound the number of entries. */
    public enum Kind {
        /** An exception on a request thread; the last safe value was used. */
        REQUEST("no request failed, the last safe quota was used"),
        /** A quota change that could not be taken over. */
        QUOTA_UPDATE("the quota was not taken over"),
        /** Broker properties that were stored for the running broker and are not in force. */
        PROPERTIES("the properties of before stay in force"),
        /** The decision became lost, or could not be looked at. */
        DECISION("the last decision holds until its lease ends"),
        /** A step of the governor, or one around it. */
        GOVERNOR("limits stay as they were"),
        /** The fence; the request went on, held by the governor. */
        FENCE("no request failed, the governor held producers instead of the fence"),
        /** A version of the thresholds file that was refused, or a fault in judging by it. */
        THRESHOLDS("the last judgement holds for 10 s"),
        /** Writing the applied-state file. */
        APPLIED_FILE("the agent cannot verify the enforcement"),
        /** Reading the broker's offline log dirs. */
        LOG_DIRS("the report has the offline log dirs of before"),
        /** Reading the broker's metrics of clients. */
        CLIENTS("figures of clients are missing"),
        /** Tiered storage is held by a pause. */
        TIERED_STORAGE("a pause holds tiered storage"),
        /** Cluster metadata from the broker, or that it does not come. */
        METADATA("shares of totals and of thresholds stay as they were");

        private final String outcome;

        Kind(String outcome) {
            this.outcome = outcome;
        }
    }

    /** How often, and the last message; null before the first. */
    public record Tally(long count, String lastMessage) {
    }

    /** A tally, and the faults that are not in the log yet: how many, and the first, since later ones may come without a stack trace. */
    private record Entry(Tally tally, long unlogged, Throwable first) {
        public Entry count(String message, Throwable fault) {
            return new Entry(new Tally(tally.count() + 1, message), fault == null ? unlogged : unlogged + 1, first == null ? fault : first);
        }

        Entry logged() {
            return new Entry(tally, 0, null);
        }
    }

    private static final long LOG_EACH_NANOS = 60_000_000_000L;
    private static final int MAX_MESSAGE = 300;
    private static final Entry NONE = new Entry(new Tally(0, null), 0, null);

    private final Map<Kind, AtomicReference<Entry>> entries = new EnumMap<>(Kind.class);
    private final Map<Kind, Long> loggedNanos = new EnumMap<>(Kind.class);

    public Errors() {
        for (Kind kind : Kind.values()) {
            entries.put(kind, new AtomicReference<>(NONE));
        }
    }

    /** Counts an error; its finder logs it. */
    public void count(Kind kind, String message) {
        count(kind, message, null);
    }

    /** Counts a fault, which is logged later. */
    public void count(Kind kind, Throwable fault) {
        count(kind, fault.toString(), fault);
    }

    private void count(Kind kind, String message, Throwable fault) {
        String shown = message == null || message.length() <= MAX_MESSAGE ? message : message.substring(0, MAX_MESSAGE) + "…";
        entries.get(kind).updateAndGet(entry -> entry.count(shown, fault));
    }

    /**
     * Logs the first fault of each kind, with its stack trace, and from then on one in a minute with how many were left out. Never to be
     * called on a request thread: a log can hang.
     *
     * @param nanos the moment, as System.nanoTime()
     */
    public synchronized void log(long nanos) {
        entries.forEach((kind, entry) -> {
            Long last = loggedNanos.get(kind);
            if (entry.get().unlogged() > 0 && (last == null || nanos - last >= LOG_EACH_NANOS)) {
                loggedNanos.put(kind, nanos);
                log(kind, entry.getAndUpdate(Entry::logged));
            }
        });
    }

    private static void log(Kind kind, Entry entry) {
        try {
            String others = entry.unlogged() == 1 ? "" : " (" + (entry.unlogged() - 1) + " more of this kind are not logged)";
            LOG.error("fault of kind {}, {}{}: {}", kind.name().toLowerCase(Locale.ROOT), kind.outcome, others, entry.first().toString(), entry.first());
        } catch (Throwable e) {
            // The log itself may fail: its disk is full, and its appender reports that, or there is no memory for a line.
        }
    }

    public Tally tally(Kind kind) {
        return entries.get(kind).get().tally();
    }

    public long total() {
        return entries.values().stream().mapToLong(entry -> entry.get().tally().count()).sum();
    }
}
