package org.kquota.metering;

/**
 * How many requests came in the last W seconds.
 *
 * <p>The broker's rate is a poor measure of the last moments: until its window has filled for the first time, and whenever the
 * bytes that leave it differ from those that come in, it jumps once a second though nothing has arrived. So requests are counted as they come.
 */
final class RequestCounts {
    /** There is one of these for each tag set, so a window of a day must not take more than one of a minute. */
    private static final int MAX_PARTS = 64;

    private final long[] byPart;
    private final double partSeconds;
    private long inWindow;
    private int part;
    private double secondsInto;

    /** @param windowSeconds W */
    RequestCounts(double windowSeconds) {
        byPart = new long[Math.min(MAX_PARTS, Math.max(1, (int) Math.round(windowSeconds)))];
        partSeconds = Math.max(1, windowSeconds / MAX_PARTS);
    }

    /** Takes in the requests since the last look, this many seconds ago. */
    void add(long count, double seconds) {
        secondsInto += seconds;
        for (int passed = 0; secondsInto >= partSeconds && passed < byPart.length; passed++) {
            secondsInto -= partSeconds;
            part = (part + 1) % byPart.length;
            inWindow -= byPart[part];
            byPart[part] = 0;
        }
        secondsInto %= partSeconds;
        byPart[part] += count;
        inWindow += count;
    }

    /** Those of the last W seconds, to a second or to a sixty-fourth of W, whichever is longer. */
    long inWindow() {
        return inWindow;
    }
}
