package org.kquota.threshold;

import java.math.BigInteger;
import java.util.Collection;
import java.util.Map;

/**
 * The bytes that may come in, per second: on this broker in all, and for single topics (Broker-side quota V1).
 *
 * @param total    of all topics together
 * @param explicit by topic, for those with a threshold of their own; all together at most the total
 */
public record TopicThresholds(long total, Map<String, Long> explicit) {
    /** @throws IllegalArgumentException if they do not add up or one is negative; the message names it */
    public TopicThresholds {
        explicit = Map.copyOf(explicit);
        if (total < 0 || explicit.values().stream().anyMatch(threshold -> threshold < 0)) {
            throw new IllegalArgumentException("a threshold is negative");
        }
        BigInteger sum = explicit.values().stream().map(BigInteger::valueOf).reduce(BigInteger.ZERO, BigInteger::add);
        if (sum.compareTo(BigInteger.valueOf(total)) > 0) {
            throw new IllegalArgumentException("the thresholds of single topics add up to " + sum + ", allowed is at most the total of " + total);
        }
    }

    /** The rest for topics without a threshold of their own, bytes per second. */
    public long rest() {
        return total - explicit.values().stream().mapToLong(Long::longValue).sum();
    }

    /** The threshold of each topic without one of its own, if these are the topics on the broker; bytes per second. */
    public double share(Collection<String> topicsHere) {
        long others = topicsHere.stream().filter(topic -> !explicit.containsKey(topic)).count();
        return others == 0 ? 0 : (double) rest() / others;
    }

    /** The threshold of a topic where that is the share of each topic without one of its own; bytes per second. */
    public double of(String topic, double share) {
        Long own = explicit.get(topic);
        return own == null ? share : own;
    }
}
