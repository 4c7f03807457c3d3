package org.kquota.node;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.KquotaCallback;
import org.kquota.TestProperties;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** Which of the plug-in's metrics a node has, by Kafka's own class for plug-ins' metrics. */
class NodeMetricsTest {
    private static final Set<String> OF_NODES = Arrays.stream(NodeMetrics.values()).map(NodeMetrics::metricName).collect(Collectors.toSet());

    private final Metrics metrics = new Metrics();
    private final KquotaCallback callback = new KquotaCallback();

    @TempDir
    private Path directory;

    @AfterEach
    void close() {
        callback.close();
        metrics.close();
    }

    private Set<String> registered(String roles) {
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put("process.roles", roles);
        callback.configure(properties);
        callback.withPluginMetrics(new PluginMetricsImpl(metrics, Map.of()));
        return metrics.metrics().keySet().stream().map(name -> name.name()).filter(OF_NODES::contains).collect(Collectors.toSet());
    }

    @Test
    void aBrokerHasAllOfThem() {
        assertEquals(OF_NODES, registered("broker,controller"));
    }

    /** It ignores the decision file, so that its decision is not lost either. */
    @Test
    void aControllerOfItsOwnHasNoneOfDecisions() {
        assertEquals(Set.of("errors-total", "tag-sets"), registered("controller"));
    }

    private Object value(String name) {
        return metrics.metrics().values().stream().filter(metric -> metric.metricName().name().equals(name)).findFirst().orElseThrow().metricValue();
    }

    @Test
    void exemptionsAndThoseWhoUseThemAreCounted() {
        registered("broker");
        assertEquals(2.0, value("exempt-entries"));
        assertEquals(0.0, value("exempt-principals-seen"));
        callback.quotaMetricTags(ClientQuotaType.PRODUCE, new KafkaPrincipal("User", "admin"), "app");
        assertEquals(1.0, value("exempt-principals-seen"));
    }
}
