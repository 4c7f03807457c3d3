package org.kquota.decision;

/** The state that holds while the decision is lost: kquota.decision.lost.action. */
public enum LostAction {
    PAUSE,
    OPEN,
    /** The last decision, while this broker's own disks have room, and for at most ten minutes; then PAUSE. */
    BOUNDED;

    /** The state where there is no last decision to keep. */
    public State state() {
        return this == OPEN ? State.OPEN : State.PAUSE;
    }
}
