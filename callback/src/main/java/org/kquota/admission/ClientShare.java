package org.kquota.admission;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * One client's part of the throttled total, and its next turn. Request threads move the turn, one thread plans; no thread waits for another.
 *
 * <p>Turns are counted on a clock of their own, see {@link Budget}: a request of b bytes moves the turn of a client of weight w on by b / w.
 */
public final class ClientShare {
    static final AtomicLong MADE = new AtomicLong();
    private static final double GOLDEN_RATIO = 0.618033988749895;
    private static final double UNPLACED = Double.NaN;

    /** In [0, 1), evenly spread over any clients that follow each other: who begins when in the first round. */
    private final double place;
    private final AtomicLong due = new AtomicLong(Double.doubleToRawLongBits(UNPLACED));
    private volatile double weight;
    private volatile double requestBytes;
    private volatile long askedNanos;
    private volatile boolean refused;
    private final AtomicLong chargedBytes = new AtomicLong();
    /** Of the planning thread. */
    private double settledBytes;
    private double arrivedBytes;
    private final AtomicBoolean listed = new AtomicBoolean();

    public ClientShare() {
        this(MADE.getAndIncrement());
    }

    /** @param number how many were made before */
    ClientShare(long number) {
        place = number * GOLDEN_RATIO % 1;
    }

    /**
     * Sets what is known of the client.
     *
     * @param bytesPerSecond its rate before THROTTLE, or its quota if that is less; 0 for a client that was not producing
     * @param ofRequest      what one request of it brings, bytes; 0 if that is not known
     */
    public void know(double bytesPerSecond, double ofRequest) {
        weight = bytesPerSecond;
        requestBytes = ofRequest;
    }

    /** Its rate before THROTTLE or its quota, bytes per second; 0 for a client that was not producing. */
    public double weight() {
        return weight;
    }

    double weight(double ofNewcomers) {
        double known = weight;
        return known > 0 ? known : ofNewcomers;
    }

    boolean isNewcomer() {
        return weight <= 0;
    }

    /** The bytes that one request of it brings, or the usual ones where that is not known. */
    public double requestBytes(double usual) {
        double known = requestBytes;
        return known > 0 ? known : usual;
    }

    /** A request asks; returns whether the client was not among the active ones. */
    boolean ask(long nanos) {
        askedNanos = nanos;
        return !listed.get() && listed.compareAndSet(false, true);
    }

    /** It is not among the active ones from now on, and has no turn. */
    void unlist() {
        displace();
        listed.set(false);
    }

    boolean askedSince(long nanos) {
        return askedNanos - nanos >= 0;
    }

    void refuse() {
        refused = true;
    }

    /** Whether its last request was refused, so that it waits for its turn. */
    public boolean isRefused() {
        return refused;
    }

    /** When its next turn is; not a number as long as it has none. */
    double due() {
        return Double.longBitsToDouble(due.get());
    }

    boolean isPlaced() {
        return !Double.isNaN(due());
    }

    /** Its first turn: somewhere in a round of this length. */
    void place(double turn, double round) {
        due.set(Double.doubleToRawLongBits(turn + place * round));
    }

    /** Forgets its turn, because other turns are counted from now on. */
    void displace() {
        due.set(Double.doubleToRawLongBits(UNPLACED));
        refused = false;
    }

    /** Its bytes have been seen to arrive, by the broker's own rates; on the planning thread. */
    public void arrived(double bytes) {
        arrivedBytes += bytes;
    }

    /**
     * Bytes that have arrived beyond what its requests were charged for, since this was asked last; on the planning thread. A request is charged before it
     * arrives, so two of them may be on their way.
     */
    public double unexpectedBytes(double usual) {
        double expected = chargedBytes.get() - settledBytes;
        double unexpected = arrivedBytes - expected;
        settledBytes += Math.min(expected, Math.max(arrivedBytes, expected - 2 * requestBytes(usual)));
        arrivedBytes = 0;
        return unexpected;
    }

    /** One request is admitted: its next turn is later by this much, not counting what it left unused before. */
    void charge(double bytes, double cost, double earliest) {
        chargedBytes.addAndGet((long) bytes);
        refused = false;
        postpone(cost, earliest);
    }

    /** Its next turn is later by this much, but not beyond the latest. */
    void postpone(double cost, double earliest, double latest) {
        postpone(Math.min(cost, Math.max(0, latest - Math.max(due(), earliest))), earliest);
    }

    private void postpone(double cost, double earliest) {
        long before;
        double next;
        do {
            before = due.get();
            next = Math.max(Double.longBitsToDouble(before), earliest) + cost;
        } while (!due.compareAndSet(before, Double.doubleToRawLongBits(next)));
    }
}
