package org.kquota.decision;

/**
 * The result of one look at the decision file.
 *
 * @param decision      the decision under a running lease, or null
 * @param deadlineNanos end of the lease on the clock of {@link System#nanoTime()}; meaningless without a decision
 * @param lost          why there is no decision, one human sentence, or null
 */
public record Verdict(Decision decision, long deadlineNanos, String lost) {
    public boolean isLost() {
        return decision == null;
    }
}
