package org.kquota.govern;

/**
 * How many requests came in the last W seconds.
 *
 * <p>The broker's rate says badly what came in just now: until its window has filled for the first time, and whenever what
 * leaves it is not what comes in, it jumps once a second though nothing has arrived. Requests are counted as they come.
 */
final class RequestCounts {
    private final long[] bySecond;
    private long inWindow;
    private int second;
    private double secondsInto;

    /** @param windowSeconds W */
    RequestCounts(double windowSeconds) {
        bySecond = new long[Math.max(1, (int) Math.round(windowSeconds))];
    }

    /** Takes in what came since the last look, so many seconds ago. */
    void add(long count, double seconds) {
        secondsInto += seconds;
        for (int passed = 0; secondsInto >= 1 && passed < bySecond.length; passed++) {
            secondsInto -= 1;
            second = (second + 1) % bySecond.length;
            inWindow -= bySecond[second];
            bySecond[second] = 0;
        }
        secondsInto %= 1;
        bySecond[second] += count;
        inWindow += count;
    }

    /** Those of the last W seconds, to a second. */
    long inWindow() {
        return inWindow;
    }
}
