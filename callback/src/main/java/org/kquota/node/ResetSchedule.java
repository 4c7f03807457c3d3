package org.kquota.node;

/**
 * When the broker has to look at all limits again: at each change, and twice after the last one. Request threads write what
 * they found, without a lock; one that is held up in between replaces the present limit by an older one. A look that finds
 * nothing changed writes and logs nothing. Used by the decision thread only.
 */
final class ResetSchedule {
    private static final long[] AGAIN_NANOS = {1_000_000_000L, 5_000_000_000L};

    private long changedNanos;
    private int again = AGAIN_NANOS.length;

    /**
     * Whether it has to look now.
     *
     * @param changed whether a limit is another one since the last question
     * @param nanos   now, as System.nanoTime()
     */
    boolean isDue(boolean changed, long nanos) {
        if (changed) {
            changedNanos = nanos;
            again = 0;
            return true;
        }
        if (again < AGAIN_NANOS.length && nanos - changedNanos >= AGAIN_NANOS[again]) {
            again++;
            return true;
        }
        return false;
    }
}
