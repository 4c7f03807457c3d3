package org.kquota.fence;

import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.server.authorizer.Authorizer;

import java.util.Map;

/**
 * Metrics for the cluster's own authorizer where Kafka gives none to the fence, because the fence has no place for them. From Kafka 4.1 on,
 * StandardAuthorizer counts each decision in its metrics, and fails without them. A class of its own, which Kafka 4.0 can't load.
 */
public final class NoopPluginMetrics {
    private NoopPluginMetrics() {
    }

    /** Gives an authorizer that counts metrics which no reporter shows, unless the fence passes Kafka's on. */
    public static void give(Authorizer own, Authorizer fence) {
        if (own instanceof Monitorable monitorable && !(fence instanceof Monitorable)) {
            monitorable.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        }
    }
}
