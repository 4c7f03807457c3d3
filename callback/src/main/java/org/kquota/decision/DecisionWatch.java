package org.kquota.decision;

import java.io.IOException;
import java.util.Arrays;
import java.util.function.LongSupplier;

/**
 * Looks at the decision file and judges its lease. Every fault of the file, its lease or the clocks is one
 * outcome with a reason: the decision is lost. Not thread-safe: one thread looks.
 */
public final class DecisionWatch {
    private final DecisionFile file;
    private final BootClock bootClock;
    private final LongSupplier nanoTime;
    private final int brokerId;
    private volatile Mode lastMode;
    private byte[] lastBytes;
    private Result<Decision> lastParsed;
    private TopicFactors lastTopics;

    public DecisionWatch(DecisionFile file, BootClock bootClock, LongSupplier nanoTime, int brokerId) {
        this.file = file;
        this.bootClock = bootClock;
        this.nanoTime = nanoTime;
        this.brokerId = brokerId;
    }

    /**
     * One look.
     *
     * @param clusterId the broker's cluster, or null while the broker does not know it yet
     */
    public Verdict look(String clusterId) {
        Result<Verdict> result = file.read()
            .then(this::parse)
            .then(decision -> judge(decision, clusterId));
        return result.isPresent() ? result.value() : new Verdict(null, 0, result.reason());
    }

    /** The mode of the last decision that was read under a running lease since this watch began, or null. */
    public Mode lastMode() {
        return lastMode;
    }

    /** A file with thousands of topics is read ten times a second, but parsed only where it has changed; and equal factors of topics stay the same object. */
    private Result<Decision> parse(byte[] bytes) {
        if (!Arrays.equals(bytes, lastBytes)) {
            lastParsed = DecisionFormat.parse(bytes).then(decision -> Result.of(withKnownTopics(decision)));
            lastBytes = bytes;
        }
        return lastParsed;
    }

    private Decision withKnownTopics(Decision decision) {
        if (decision.topics() == null || !decision.topics().equals(lastTopics)) {
            lastTopics = decision.topics();
            return decision;
        }
        return decision.withTopics(lastTopics);
    }

    private Result<Verdict> judge(Decision decision, String clusterId) {
        if (clusterId != null && !clusterId.equals(decision.clusterId())) {
            return Result.refused("decision is for cluster " + decision.clusterId() + ", this is " + clusterId);
        }
        if (decision.brokerId() != brokerId) {
            return Result.refused("decision is for broker " + decision.brokerId() + ", this is " + brokerId);
        }
        long uptimeMs;
        long nanos;
        String bootId;
        try {
            bootId = bootClock.bootId();
            // Nanos first: if this thread is held up between the two readings, the deadline is early, not late.
            nanos = nanoTime.getAsLong();
            uptimeMs = bootClock.uptimeMs();
        } catch (IOException e) {
            return Result.refused("the lease cannot be judged: " + e.getMessage());
        }
        if (!bootId.equals(decision.bootId())) {
            return Result.refused("decision was written before this machine booted");
        }
        long leftMs = decision.validUntilUptimeMs() - uptimeMs;
        if (leftMs <= 0) {
            return Result.refused("the decision's lease ran out");
        }
        lastMode = decision.mode();
        // Half the range of nanoTime is 146 years: a longer lease would compare as past.
        long leftNanos = Math.min(leftMs, Long.MAX_VALUE / 4_000_000) * 1_000_000;
        return Result.of(new Verdict(decision, nanos + leftNanos, null));
    }
}
