package org.kquota.admission;

import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.Metric;
import com.yammer.metrics.core.MetricName;

import org.apache.kafka.server.metrics.KafkaYammerMetrics;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The meters behind kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec of the broker in this JVM: a count is one read of memory, where JMX would take a lock.
 * The broker's coordinators append to topics of their own by the same way, so these are subtracted.
 */
public final class BrokerLandedBytes implements LandedBytes {
    private static final String ALL = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec";
    private static final List<String> COORDINATORS_TOPICS = List.of("__consumer_offsets", "__transaction_state", "__share_group_state");

    private record Meters(Meter all, List<Meter> coordinators) {
    }

    private volatile Meters meters;

    /** Looks for the meters; returns whether they are there. Not for request threads. */
    public boolean find() {
        Meter all = null;
        List<Meter> coordinators = new ArrayList<>();
        for (Map.Entry<MetricName, Metric> entry : KafkaYammerMetrics.defaultRegistry().allMetrics().entrySet()) {
            String name = entry.getKey().getMBeanName();
            if (name.startsWith(ALL) && entry.getValue() instanceof Meter meter) {
                if (name.equals(ALL)) {
                    all = meter;
                } else if (COORDINATORS_TOPICS.stream().anyMatch(topic -> name.equals(ALL + ",topic=" + topic))) {
                    coordinators.add(meter);
                }
            }
        }
        meters = all == null ? null : new Meters(all, List.copyOf(coordinators));
        return all != null;
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
