package org.kquota.admission;

import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.Metric;
import com.yammer.metrics.core.MetricName;

import org.apache.kafka.server.metrics.KafkaYammerMetrics;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The meters behind kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec of the broker in this JVM: a count is one read of memory, where JMX would take a lock.
 * The broker's coordinators append to topics of their own by the same way, so these are subtracted.
 */
public final class BrokerLandedBytes implements LandedBytes, TopicBytes {
    private static final String ALL = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec";
    private static final String OF_TOPIC = ALL + ",topic=";
    private static final List<String> COORDINATORS_TOPICS = List.of("__consumer_offsets", "__transaction_state", "__share_group_state");

    private static final String REMOTE_LOG_METADATA = "__remote_log_metadata";

    private record Meters(Meter all, List<Meter> coordinators, Map<String, Counter> topics) {
    }

    private record MeterCounter(Meter meter) implements Counter {
        @Override
        public long bytes() {
            return meter.count();
        }

        @Override
        public double rate() {
            return meter.oneMinuteRate();
        }
    }

    private volatile Meters meters;

    /** Looks for the meters; returns whether they are there. Not for request threads. */
    public boolean find() {
        Meter all = null;
        List<Meter> coordinators = new ArrayList<>();
        Map<String, Counter> topics = new HashMap<>();
        for (Map.Entry<MetricName, Metric> entry : KafkaYammerMetrics.defaultRegistry().allMetrics().entrySet()) {
            String name = entry.getKey().getMBeanName();
            if (name.startsWith(ALL) && entry.getValue() instanceof Meter meter) {
                if (name.equals(ALL)) {
                    all = meter;
                } else if (name.startsWith(OF_TOPIC)) {
                    add(name.substring(OF_TOPIC.length()), meter, coordinators, topics);
                }
            }
        }
        meters = all == null ? null : new Meters(all, List.copyOf(coordinators), topics);
        return all != null;
    }

    private static void add(String topic, Meter meter, List<Meter> coordinators, Map<String, Counter> topics) {
        if (COORDINATORS_TOPICS.contains(topic)) {
            coordinators.add(meter);
        } else if (!topic.equals(REMOTE_LOG_METADATA)) {
            topics.put(topic, new MeterCounter(meter));
        }
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
        long bytes = known.all.count();
        for (int i = 0; i < known.coordinators.size(); i++) {
            bytes -= known.coordinators.get(i).count();
        }
        return bytes;
    }
}
