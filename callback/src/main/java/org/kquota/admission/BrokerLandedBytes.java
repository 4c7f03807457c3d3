package org.kquota.admission;

import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.Metric;
import com.yammer.metrics.core.MetricName;

import org.apache.kafka.server.metrics.KafkaYammerMetrics;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

/**
 * The meters behind kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec of the broker in this JVM: a count is one read of memory, where JMX would take a lock.
 * The broker's coordinators append to topics of their own by the same way, so these are subtracted.
 */
public final class BrokerLandedBytes implements LandedBytes, TopicBytes {
    private static final String ALL = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec";
    private static final String OF_TOPIC = ALL + ",topic=";
    private static final List<String> COORDINATORS_TOPICS = List.of("__consumer_offsets", "__transaction_state", "__share_group_state");

    private static final String REMOTE_LOG_METADATA = "__remote_log_metadata";

    /** @param removedBytes what coordinators' meters that Kafka has removed had counted: the total keeps it */
    private record Meters(Meter all, List<Meter> coordinators, long removedBytes, Map<String, Counter> topics) {
    }

    /** The meter's own rates are of a minute and more, and begin with a part of five seconds: they lag behind the clients' baselines. */
    private static final class TopicCounter implements Counter {
        private static final double REMEMBERED_SECONDS = 10;

        private final Meter meter;
        private long learntBytes;
        private double rateSum;
        private double rateWeight;
        private boolean held;
        /** The topic began somewhere in the time that its rate is of: that counts only until a whole one has passed. */
        private boolean begins;

        /** @param learntBytes how much of its count is older than what its rate is learnt from */
        TopicCounter(Meter meter, long learntBytes) {
            this.meter = meter;
            this.learntBytes = learntBytes;
            this.begins = learntBytes == 0;
        }

        @Override
        public long bytes() {
            return meter.count();
        }

        @Override
        public double rate() {
            return rateWeight > 0 ? rateSum / rateWeight : 0;
        }

        void learn(double seconds, boolean isHeld) {
            long now = meter.count();
            double seen = (now - learntBytes) / seconds;
            learntBytes = now;
            if (begins && rateWeight > 0 && !held && !isHeld) {
                begins = false;
                rateSum = 0;
                rateWeight = 0;
            }
            if (!held && !isHeld || seen > rate()) {
                double share = 1 - Math.exp(-seconds / REMEMBERED_SECONDS);
                rateSum += (seen - rateSum) * share;
                rateWeight += (1 - rateWeight) * share;
            }
            held = isHeld;
        }
    }

    private volatile Meters meters;

    /**
     * Looks for the meters, and learns the topics' rates; returns whether the meters are there. Not for request threads.
     *
     * @param seconds the time since the last look, 0 for the first
     * @param held    whether clients are kept from writing to this topic as they would: such a rate is not believed, unless it is above the one before
     */
    public boolean find(double seconds, Predicate<String> held) {
        Meter all = null;
        List<Meter> coordinators = new ArrayList<>();
        Map<String, Counter> topics = new HashMap<>();
        Map<String, Counter> before = topics();
        for (Map.Entry<MetricName, Metric> entry : KafkaYammerMetrics.defaultRegistry().allMetrics().entrySet()) {
            String name = entry.getKey().getMBeanName();
            if (name.startsWith(ALL) && entry.getValue() instanceof Meter meter) {
                if (name.equals(ALL)) {
                    all = meter;
                } else if (name.startsWith(OF_TOPIC)) {
                    String topic = name.substring(OF_TOPIC.length());
                    if (COORDINATORS_TOPICS.contains(topic)) {
                        coordinators.add(meter);
                    } else if (!topic.equals(REMOTE_LOG_METADATA)) {
                        topics.put(topic, counter(meter, before.get(topic), seconds, held.test(topic)));
                    }
                }
            }
        }
        meters = all == null ? null : new Meters(all, List.copyOf(coordinators), removedBytes(all, coordinators), topics);
        return all != null;
    }

    private long removedBytes(Meter all, List<Meter> coordinators) {
        Meters before = meters;
        if (before == null || before.all != all) {
            return 0;
        }
        return before.removedBytes + before.coordinators.stream().filter(meter -> !coordinators.contains(meter)).mapToLong(Meter::count).sum();
    }

    private static TopicCounter counter(Meter meter, Counter before, double seconds, boolean isHeld) {
        TopicCounter counter = before instanceof TopicCounter known && known.meter == meter ? known
            : new TopicCounter(meter, seconds > 0 ? 0 : meter.count());
        if (seconds > 0) {
            counter.learn(seconds, isHeld);
        }
        return counter;
    }

    @Override
    public Map<String, Counter> topics() {
        Meters known = meters;
        return known == null ? Map.of() : known.topics;
    }

    @Override
    public long bytes() {
        Meters known = meters;
        if (known == null) {
            return 0;
        }
        long bytes = known.all.count() - known.removedBytes;
        for (int i = 0; i < known.coordinators.size(); i++) {
            bytes -= known.coordinators.get(i).count();
        }
        return bytes;
    }
}
