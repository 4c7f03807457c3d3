package org.kquota;

import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.Metrics;

/** Metrics that are shown over JMX, as a broker's are. */
public final class BrokerMetrics {
    private BrokerMetrics() {
    }

    /** New ones; closing them takes their MBeans back. */
    public static Metrics reported() {
        JmxReporter reporter = new JmxReporter();
        reporter.contextChange(new KafkaMetricsContext("kafka.server"));
        Metrics metrics = new Metrics();
        metrics.addReporter(reporter);
        return metrics;
    }
}
