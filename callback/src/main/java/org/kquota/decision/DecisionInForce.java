package org.kquota.decision;

/**
 * The decision in force on this node: the one published last, until its lease ends. One thread publishes, request threads ask, and find the end of the lease
 * themselves.
 */
public final class DecisionInForce {
    private volatile EffectiveDecision published;
    private volatile EffectiveDecision expired;

    public DecisionInForce(EffectiveDecision first) {
        published = first;
    }

    /** This holds from now on, until the end of its lease. */
    public void publish(EffectiveDecision next) {
        published = next;
    }

    /** The decision published last, whether or not its lease is over. */
    public EffectiveDecision published() {
        return published;
    }

    /** The decision that holds now, the end of the lease included. */
    public EffectiveDecision now() {
        return published.at(System.nanoTime());
    }

    /** The decision that holds now, for a request: where the lease is over, other threads learn of it by {@link #expired()}. */
    public EffectiveDecision expireIfDue() {
        EffectiveDecision last = published;
        EffectiveDecision holds = last.at(System.nanoTime());
        if (holds != last && holds != expired) {
            expired = holds;
        }
        return holds;
    }

    /** The decision that has held since a request found the lease over; null before the first time. */
    public EffectiveDecision expired() {
        return expired;
    }
}
