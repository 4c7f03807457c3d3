package org.kquota.decision;

/** How much producers may send; exactly the three states of the Strimzi proposal. */
public enum State {
    /** Producers are held by nothing but their configured quotas. */
    OPEN,
    /** Producers are slowed down to the throttle factor of what they produced before. */
    THROTTLE,
    /** Producers are stopped. */
    PAUSE
}
