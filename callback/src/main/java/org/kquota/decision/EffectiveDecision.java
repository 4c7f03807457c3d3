package org.kquota.decision;

/**
 * The decision that request threads use, immutable. A request thread that finds the lease over uses {@link #afterLease}
 * itself: it needs no other thread to be alive.
 *
 * @param state         OPEN, THROTTLE or PAUSE, as decided or for lack of a decision
 * @param factor        throttle factor in [0, 1]
 * @param topics        where its scope is topics, the factor of each; state and factor are the worst of all. Null where its scope is the cluster
 * @param mode          the mode in force: enforce only if it is both the file's and the broker property's
 * @param decision      the decision behind it, or null while the decision is lost
 * @param lost          why the decision is lost, one sentence, or null
 * @param deadlineNanos end of the lease on System.nanoTime(); meaningless while the decision is lost
 * @param afterLease    the decision that holds when the lease has run out, or null while the decision is lost
 * @param kept          why the decision holds on although its lease is over, one sentence, or null
 */
public record EffectiveDecision(State state, double factor, TopicFactors topics, Mode mode, Decision decision, String lost, long deadlineNanos,
                                EffectiveDecision afterLease, String kept) {

    public static final String LEASE_RAN_OUT = "the decision's lease ran out";

    public static EffectiveDecision lost(State action, Mode mode, String reason) {
        return new EffectiveDecision(action, action == State.OPEN ? 1.0 : 0.0, null, mode, null, reason, 0, null, null);
    }

    public static EffectiveDecision decided(Decision decision, Mode mode, long deadlineNanos, State lostAction) {
        return decided(decision, mode, deadlineNanos, lost(lostAction, mode, LEASE_RAN_OUT));
    }

    /** @param afterLease the decision that holds when the lease has run out */
    public static EffectiveDecision decided(Decision decision, Mode mode, long deadlineNanos, EffectiveDecision afterLease) {
        return new EffectiveDecision(decision.state(), decision.factor(), decision.topics(), mode, decision, null, deadlineNanos, afterLease, null);
    }

    /**
     * A decision that holds on after its lease, until that moment; then PAUSE.
     *
     * @param reason why it has not been renewed, one sentence
     */
    static EffectiveDecision kept(Decision decision, Mode mode, long untilNanos, String reason) {
        return new EffectiveDecision(decision.state(), decision.factor(), decision.topics(), mode, decision, null, untilNanos,
            lost(State.PAUSE, mode, reason), reason);
    }

    /** The same for all producers, with no more than that factor, which is below 1. */
    EffectiveDecision atMost(double bound) {
        double least = Math.min(factor, bound);
        return new EffectiveDecision(least > 0 ? State.THROTTLE : State.PAUSE, least, null, mode, decision, lost, deadlineNanos, afterLease, kept);
    }

    /** The same, where a THROTTLE has no smaller factor than that floor, which is below 1; a PAUSE stays one. */
    public EffectiveDecision withFloor(double floor) {
        double raised = raised(factor, floor);
        TopicFactors raisedTopics = topics == null ? null : topics.withFloor(floor);
        EffectiveDecision raisedAfterLease = afterLease == null ? null : afterLease.withFloor(floor);
        return raised == factor && raisedTopics == topics && raisedAfterLease == afterLease ? this
            : new EffectiveDecision(state, raised, raisedTopics, mode, decision, lost, deadlineNanos, raisedAfterLease, kept);
    }

    static double raised(double factor, double floor) {
        return factor > 0 ? Math.max(factor, floor) : factor;
    }

    /** The decision that holds at that moment of System.nanoTime(). */
    public EffectiveDecision at(long nanos) {
        return afterLease != null && nanos - deadlineNanos > 0 ? afterLease.at(nanos) : this;
    }

    /** The state that producers feel: OPEN where nothing is enforced. */
    public State enforced() {
        return mode == Mode.ENFORCE ? state : State.OPEN;
    }

    /** Whom it is about: a decision that is lost is about all producers. */
    public Scope scope() {
        return topics == null ? Scope.CLUSTER : Scope.TOPICS;
    }

    /** The throttle factor for what is written to this topic. */
    public double factor(String topic) {
        return topics == null ? factor : topics.of(topic);
    }

    /** Whether it names this topic. */
    public boolean names(String topic) {
        return topics != null && topics.names(topic);
    }

    /** How many topics it pauses or throttles by name. */
    public int topicsAtStake() {
        return topics == null ? 0 : topics.paused() + topics.throttled();
    }

    /**
     * The state by which the governor goes. Where the scope is topics, the fence alone refuses and slows: requests are admitted while some topic is throttled.
     */
    public State governed() {
        if (topics == null || enforced() == State.OPEN) {
            return enforced();
        }
        return topics.slowest() < 1 ? State.THROTTLE : State.OPEN;
    }

    /** The throttle factor of that state. */
    public double governedFactor() {
        return topics == null ? factor : topics.slowest();
    }

    /** The same for all producers: its state and its factor, the worst of all topics. */
    public EffectiveDecision forCluster() {
        return topics == null ? this : new EffectiveDecision(state, factor, null, mode, decision, lost, deadlineNanos,
            afterLease == null ? null : afterLease.forCluster(), kept);
    }

    /** The same, but only observed. */
    public EffectiveDecision observed() {
        return mode == Mode.OBSERVE ? this
            : new EffectiveDecision(state, factor, topics, Mode.OBSERVE, decision, lost, deadlineNanos,
                afterLease == null ? null : afterLease.observed(), kept);
    }

    /** Whether a reader of the log would call this the same situation. */
    public boolean sameSituation(EffectiveDecision other) {
        return state == other.state && mode == other.mode && (lost == null) == (other.lost == null) && (kept == null) == (other.kept == null)
            && (topics == null ? other.topics == null : topics.sameStates(other.topics));
    }

    /** One sentence for the log. */
    public String sentence() {
        String why = kept != null ? "the last decision holds while the own disks have room, because " + kept : lost == null ? "decision " + decision.sequence() + (decision.fallback() ? ", a fallback for lack of data" : "")
            : "the decision is lost: " + lost;
        return what() + (mode == Mode.OBSERVE && state != State.OPEN ? ", but only observed" : "") + " (" + why + ")";
    }

    private String what() {
        if (topics != null) {
            String held = topics.sentence();
            return held.isEmpty() ? "no topic is at stake: producers are not held" : held + ": producers to them are held";
        }
        return switch (state) {
            case OPEN -> "OPEN: producers are not held";
            case THROTTLE -> String.format(java.util.Locale.ROOT, "THROTTLE: producers are slowed down to %.1f %%", factor * 100);
            case PAUSE -> "PAUSE: producers are stopped";
        };
    }
}
