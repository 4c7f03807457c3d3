package org.kquota.admission;

/**
 * How many bytes land in the log for each byte of a produce request, in OPEN over the last minute: clients' rates are those of their requests, headers included,
 * and the broker's counter is of records alone.
 */
public final class LandedRatio {
    private static final double REMEMBERED_SECONDS = 60;
    /** Requests of single small records are mostly headers. */
    private static final double SMALLEST = 0.1;
    /** From this much on, there is something to compare. */
    private static final double ENOUGH_BYTES = 1_000_000;

    private double landed;
    private double requested;

    /** Takes in what has landed and what the rates of requests add up to, in a time that has just passed. */
    public void add(double landedBytes, double requestedBytes, double seconds) {
        double kept = Math.exp(-seconds / REMEMBERED_SECONDS);
        landed = landed * kept + Math.max(0, landedBytes);
        requested = requested * kept + requestedBytes;
    }

    /** At most 1, since a rate that rises is seen late. */
    public double get() {
        return requested < ENOUGH_BYTES ? 1 : Math.min(1, Math.max(SMALLEST, landed / requested));
    }
}
