package org.kquota.fence;

/** The throttle factor of each topic, in [0, 1]; a decision for the whole cluster has one for all. */
@FunctionalInterface
interface TopicFactors {
    double of(String topic);
}
