package org.kquota.decision;


/**
 * The decision that request threads use, immutable. A request thread that finds the lease over uses {@link #afterLease}
 * itself: it needs no other thread to be alive.
 *
 * @param state         OPEN, THROTTLE or PAUSE, as decided or for lack of a decision
 * @param factor        throttle factor in [0, 1]
 * @param mode          the mode in force: enforce only if it is both the file's and the broker property's
 * @param decision      the decision behind it, or null while the decision is lost
 * @param lost          why the decision is lost, one sentence, or null
 * @param deadlineNanos end of the lease on System.nanoTime(); meaningless while the decision is lost
 * @param afterLease    the decision that holds when the lease has run out, or null while the decision is lost
 */
public record EffectiveDecision(State state, double factor, Mode mode, Decision decision, String lost, long deadlineNanos, EffectiveDecision afterLease) {

    public static EffectiveDecision lost(State action, Mode mode, String reason) {
        return new EffectiveDecision(action, action == State.OPEN ? 1.0 : 0.0, mode, null, reason, 0, null);
    }

    public static EffectiveDecision decided(Decision decision, Mode mode, long deadlineNanos, State lostAction) {
        return new EffectiveDecision(decision.state(), decision.factor(), mode, decision, null, deadlineNanos,
            lost(lostAction, mode, "the decision's lease ran out"));
    }

    /** The decision that holds at that moment of System.nanoTime(). */
    public EffectiveDecision at(long nanos) {
        return afterLease != null && nanos - deadlineNanos > 0 ? afterLease : this;
    }

    /** The state that producers feel: OPEN where nothing is enforced. */
    public State enforced() {
        return mode == Mode.ENFORCE ? state : State.OPEN;
    }

    /** The same, but only observed. */
    public EffectiveDecision observed() {
        return mode == Mode.OBSERVE ? this
            : new EffectiveDecision(state, factor, Mode.OBSERVE, decision, lost, deadlineNanos, afterLease == null ? null : afterLease.observed());
    }

    /** Whether a reader of the log would call this the same situation. */
    public boolean sameSituation(EffectiveDecision other) {
        return state == other.state && mode == other.mode && (lost == null) == (other.lost == null);
    }

    /** One sentence for the log. */
    public String sentence() {
        String what = switch (state) {
            case OPEN -> "OPEN: producers are not held";
            case THROTTLE -> String.format(java.util.Locale.ROOT, "THROTTLE: producers are slowed down to %.1f %%", factor * 100);
            case PAUSE -> "PAUSE: producers are stopped";
        };
        String why = lost == null ? "decision " + decision.sequence() + (decision.fallback() ? ", a fallback for lack of data" : "")
            : "the decision is lost: " + lost;
        return what + (mode == Mode.OBSERVE && state != State.OPEN ? ", but only observed" : "") + " (" + why + ")";
    }
}
