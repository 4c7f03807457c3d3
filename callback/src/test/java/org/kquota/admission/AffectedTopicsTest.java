package org.kquota.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.kquota.decision.TopicFactors;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;

class AffectedTopicsTest {
    private static final double MB = 1e6;
    /** Of all clients, were they held alike: 10 MB/s before, of which 90 % land. */
    private static final Target ALL = new Target(0.1, 10 * MB, 10 * MB, 0.05, 0.9, 0);

    private static final class Topic implements TopicBytes.Counter {
        private long bytes;
        private double rate;

        Topic(long bytes, double rate) {
            this.bytes = bytes;
            this.rate = rate;
        }

        @Override
        public long bytes() {
            return bytes;
        }

        @Override
        public double rate() {
            return rate;
        }
    }

    private Map<String, TopicBytes.Counter> topics = new HashMap<>();
    private final AffectedTopics stakes = new AffectedTopics();
    private final TopicBytes bytes = new TopicBytes() {
        @Override
        public Map<String, Counter> topics() {
            return topics;
        }
    };

    private Topic topic(String name, double topicRate) {
        Topic made = new Topic(1_000_000_000, topicRate);
        topics = new HashMap<>(topics);
        topics.put(name, made);
        return made;
    }

    private Target look(Map<String, Double> factors) {
        return look(factors, 1);
    }

    private Target look(Map<String, Double> factors, double others) {
        stakes.look(new TopicFactors(factors, others), bytes, 0.9);
        return stakes.target(ALL);
    }

    private static void assertTarget(double factor, double baseline, Target target) {
        assertEquals(factor, target.factor(), 1e-9);
        assertEquals(baseline, target.totalRate(), 1e-3);
        assertEquals(baseline, target.unthrottled(false), 1e-3);
        assertEquals(0.9, target.landedRatio());
        assertEquals(0, target.exemptRate());
    }

    /** Clients are counted by their requests, and these are larger than what lands. */
    @Test
    void theBaselineOfATopicIsInBytesOfRequests() {
        topic("orders", 4.5 * MB);
        topic("clicks", 4.5 * MB);
        assertTarget(0.4, 5 * MB, look(Map.of("orders", 0.4)));
    }

    @Test
    void theFactorIsTheMeanByBaselines() {
        topic("orders", 1.8 * MB);
        topic("clicks", 5.4 * MB);
        topic("paused", 1.8 * MB);
        assertTarget((0.8 * 2 + 0.2 * 6) / 8, 8 * MB, look(Map.of("orders", 0.8, "clicks", 0.2, "paused", 0.0)));
    }

    @Test
    void aTopicThatComesToBeAtStakeLaterHasItsOwnRate() {
        topic("orders", 0.9 * MB);
        look(Map.of("orders", 0.0));
        topic("clicks", 0.9 * MB);
        assertTarget(0.5, 1 * MB, look(Map.of("orders", 0.0, "clicks", 0.5)));
    }

    @Test
    void aBaselineStaysWhileTheTopicIsAtStakeAndIsForgottenThen() {
        Topic orders = topic("orders", 4.5 * MB);
        topic("clicks", 4.5 * MB);
        look(Map.of("orders", 0.0));
        orders.rate = 0;
        assertTarget(0.5, 5 * MB, look(Map.of("orders", 0.5)));
        look(Map.of());
        orders.rate = 0.9 * MB;
        assertTarget(0.5, 1 * MB, look(Map.of("orders", 0.5)));
        stakes.clear();
        orders.rate = 4.5 * MB;
        assertTarget(0.5, 5 * MB, look(Map.of("orders", 0.5)));
    }

    @Test
    void theTargetIsNeverZero() {
        assertTarget(0.3, 0.5 * MB, look(Map.of("not-here", 0.3)));
        topic("orders", 0);
        assertTarget(0.3, 0.5 * MB, look(Map.of("orders", 0.3)));
        stakes.clear();
        assertTarget(0.3, 0.5 * MB, look(Map.of("orders", 0.3)));
        stakes.clear();
        assertTarget(0.2, 0.5 * MB, look(Map.of(), 0.2));
    }

    @Test
    void onlyWhatLandsInThrottledTopicsCounts() {
        Topic orders = topic("orders", MB);
        Topic clicks = topic("clicks", MB);
        Topic healthy = topic("healthy", MB);
        look(Map.of("orders", 0.5, "clicks", 0.0));
        orders.bytes += 1000;
        clicks.bytes += 300;
        healthy.bytes += 70;
        look(Map.of("orders", 0.5, "clicks", 0.5));
        assertEquals(1000, stakes.landedBytes());
        clicks.bytes += 5;
        look(Map.of("clicks", 0.5));
        assertEquals(1005, stakes.landedBytes(), "not what landed in the pause");
        orders.bytes += 1000;
        look(Map.of("clicks", 0.5));
        assertEquals(1005, stakes.landedBytes());
    }

    @Test
    void aCounterThatBeginsAgainCountsFromItsBeginning() {
        topic("orders", MB);
        look(Map.of("orders", 0.5));
        topic("orders", MB).bytes = 40;
        look(Map.of("orders", 0.5));
        look(Map.of("orders", 0.5));
        assertEquals(40, stakes.landedBytes());
        topic("new", 0).bytes = 2;
        look(Map.of("orders", 0.5, "new", 0.5));
        look(Map.of("orders", 0.5, "new", 0.5));
        assertEquals(42, stakes.landedBytes(), "it has begun since the last look");
    }

    @Test
    void allTopicsThatAreNotNamedMayBeAtStake() {
        Topic orders = topic("orders", 4.5 * MB);
        topic("clicks", 4.5 * MB);
        assertTarget(0.2, 5 * MB, look(Map.of("clicks", 1.0), 0.2));
        orders.bytes += 7;
        look(Map.of("clicks", 1.0), 0.2);
        assertEquals(7, stakes.landedBytes());
    }

    /** The target is Σ factor · baseline over the throttled topics, whichever these are. */
    @Test
    void randomFactorsAddUp() {
        Random random = new Random(5);
        for (int i = 0; i < 300; i++) {
            topics = new HashMap<>();
            stakes.clear();
            Map<String, Double> factors = new HashMap<>();
            double expected = 0;
            topic("rest", 3 * MB);
            double baselines = 0;
            for (int t = 0; t < 6; t++) {
                double share = random.nextDouble() * MB;
                topic("t" + t, share);
                double factor = random.nextInt(5) / 4.0;
                if (random.nextBoolean()) {
                    factors.put("t" + t, factor);
                    if (factor > 0 && factor < 1) {
                        baselines += share / 0.9;
                        expected += factor * share / 0.9;
                    }
                }
            }
            Target target = look(factors);
            assertTrue(target.factor() > 0 && target.factor() <= 1 && target.totalRate() >= 0.5 * MB);
            if (baselines >= 0.5 * MB) {
                assertEquals(expected, target.factor() * target.totalRate(), 1e-3);
            }
        }
    }
}
