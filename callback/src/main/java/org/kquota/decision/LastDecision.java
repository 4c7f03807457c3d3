package org.kquota.decision;

import java.util.List;

/**
 * The last decision that was read under a running lease, for the time after it. It holds on while this broker's own disks have room: the other brokers know how
 * long a silent one may fill, and this one sees its own disks itself. Pure; for one thread.
 */
public final class LastDecision {
    /** A decision holds for this long after the end of its lease at most. */
    static final long KEPT_NANOS = 600_000_000_000L;
    /** The result of a look at the disks holds for this long. */
    static final long LOOK_NANOS = 2_000_000_000L;
    /** This long before the end of a lease the looks at the disks begin: an agent that is alive renews it sooner. */
    static final long WATCHED_NANOS = 15_000_000_000L;

    private Decision decision;
    private long deadlineNanos;

    /** A decision was read under a running lease. */
    public void remember(Verdict verdict) {
        decision = verdict.decision();
        deadlineNanos = verdict.deadlineNanos();
    }

    /**
     * The log dirs to look at now; null where there is no need, or no use.
     *
     * @param lost whether the decision is lost; otherwise its lease may be about to end
     */
    public List<OwnLogDir> watched(boolean lost, long nanos) {
        boolean due = decision != null && nanos - deadlineNanos <= KEPT_NANOS && (lost || nanos - deadlineNanos > -WATCHED_NANOS);
        return due ? decision.ownLogDirs() : null;
    }

    /**
     * The decision that holds after its lease, for the time of one more look at the disks.
     *
     * @param reason   why the decision is lost, one sentence
     * @param headroom the least of this broker's own log dirs, in [0, 1]; not a number where it is not known
     * @param nanos    now, or the end of the lease if that is still to come
     * @return null where no last decision can hold
     */
    public EffectiveDecision keep(String reason, Mode mode, double headroom, long nanos) {
        if (decision == null || decision.ownLogDirs() == null || Double.isNaN(headroom)) {
            return null;
        }
        long endNanos = deadlineNanos + KEPT_NANOS;
        long left = Math.min(LOOK_NANOS, endNanos - nanos);
        if (left <= 0) {
            return null;
        }
        EffectiveDecision last = EffectiveDecision.kept(decision, mode, nanos + left, reason);
        return headroom >= 1 ? last : last.atMost(headroom);
    }

    /** Whether its lease still runs, so that the agent's own look at the disks is no older than a lease. */
    public boolean isLeased(long nanos) {
        return decision != null && nanos - deadlineNanos <= 0;
    }
}
