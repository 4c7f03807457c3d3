package org.kquota.govern;

/**
 * How many requests came in the last W seconds.
 *
 * <p>The broker's rate says badly what came in just now: until its window has filled for the first time, and whenever what
 * leaves it is not what comes in, it jumps once a second though nothing has arrived. Requests are counted as they come.
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

    /** Takes in what came since the last look, so many seconds ago. */
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
