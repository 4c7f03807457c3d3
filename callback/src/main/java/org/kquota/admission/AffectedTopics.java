package org.kquota.admission;

import org.kquota.decision.TopicFactors;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The topics at stake on this broker: what each of them had before, and how much lands in those that are throttled. A topic has its baseline from when it comes to be
 * at stake until it is no more. Used by the planning thread.
 */
public final class AffectedTopics {
    private static final class Stake {
        private TopicBytes.Counter counter;
        private double baseline;
        private double factor;
        private long countedBytes;
    }

    private Map<String, Stake> stakes = Map.of();
    /** Those of them that keep a part of their rate. */
    private List<Stake> throttled = List.of();
    private TopicFactors factors;
    private Map<String, TopicBytes.Counter> counters;
    private long landedBytes;

    /**
     * Takes in what has landed since the last look, and from now on goes by these factors.
     *
     * @param landedRatio bytes that land in the log for each byte of a produce request
     */
    public void look(TopicFactors next, TopicBytes bytes, double landedRatio) {
        for (Stake stake : throttled) {
            long now = stake.counter.bytes();
            landedBytes += now - stake.countedBytes;
            stake.countedBytes = now;
        }
        Map<String, TopicBytes.Counter> nextCounters = bytes.topics();
        if (next != factors || nextCounters != counters) {
            stake(next, nextCounters, landedRatio);
        }
    }

    private void stake(TopicFactors next, Map<String, TopicBytes.Counter> nextCounters, double landedRatio) {
        Map<String, Stake> nextStakes = new HashMap<>();
        Collection<String> topics = next.others() < 1 ? nextCounters.keySet() : next.named().keySet();
        for (String topic : topics) {
            TopicBytes.Counter counter = nextCounters.get(topic);
            if (counter != null && next.of(topic) < 1) {
                Stake stake = stakes.get(topic);
                if (stake == null) {
                    stake = new Stake();
                    stake.baseline = counter.rate() / landedRatio;
                    stake.countedBytes = counters == null || counters.containsKey(topic) ? counter.bytes() : 0;
                } else if (stake.factor == 0) {
                    // Exempt principals write in a pause, too, and all clients do while nothing is enforced: producers that are throttled after it owe none of that.
                    stake.countedBytes = counter.bytes();
                } else if (!counter.equals(stake.counter)) {
                    stake.countedBytes = 0;
                }
                stake.counter = counter;
                stake.factor = next.of(topic);
                nextStakes.put(topic, stake);
            }
        }
        stakes = nextStakes;
        throttled = nextStakes.values().stream().filter(stake -> stake.factor > 0).toList();
        factors = next;
        counters = nextCounters;
    }

    /** Bytes landed in throttled topics by the last look; the count never begins again. */
    public long landedBytes() {
        return landedBytes;
    }

    /**
     * The target of what is written to throttled topics: the sum of each one's factor times its baseline. Where they had next to nothing, that of the smallest share.
     *
     * @param ofAll that of all clients together, were they held alike
     */
    public Target target(Target ofAll) {
        double baseline = 0;
        double kept = 0;
        for (Stake stake : throttled) {
            baseline += stake.baseline;
            kept += stake.factor * stake.baseline;
        }
        double factor = kept > 0 ? kept / baseline : factors.slowest();
        return ofAll.forTopics(factor, Math.max(baseline, ofAll.newcomersMinRatio() * ofAll.totalRate()));
    }

    /** No topic is at stake any more: all are held alike, or none is. */
    public void clear() {
        stakes = Map.of();
        throttled = List.of();
        factors = null;
        counters = null;
    }
}
