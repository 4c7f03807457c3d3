package org.kquota.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.kquota.TestDecision.await;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Metrics;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.kquota.BrokerMetrics;
import org.kquota.TestDecision;
import org.kquota.TestProperties;
import org.kquota.config.KquotaConfig;
import org.kquota.decision.BootClock;
import org.kquota.error.Errors;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;

/** The warnings of a broker that does not pass on the leaders of partitions (KAFKA-20746). */
class MetadataFreshnessTest {
    private final Metrics metrics = BrokerMetrics.reported();
    private final AtomicLong failures = new AtomicLong(3);

    @TempDir
    private Path directory;

    @AfterEach
    void close() {
        metrics.close();
    }

    private void countFailures() {
        metrics.addMetric(new MetricName("metadata-apply-error-count", "broker-metadata-metrics", "", Map.of()), (config, nowMs) -> failures.get());
    }

    @Test
    void itIsOldOnceTheBrokerFailedToApplyMoreSinceItsLastUpdate() {
        countFailures();
        MetadataFreshness metadata = new MetadataFreshness();
        metadata.updated();
        assertNull(metadata.whyOld(false));
        failures.incrementAndGet();
        assertTrue(metadata.whyOld(false).contains("KAFKA-20746"));
        assertNull(metadata.whyOld(false), "reported once");
        metadata.updated();
        assertNull(metadata.whyOld(false));
        failures.incrementAndGet();
        assertNotNull(metadata.whyOld(false), "another time");
    }

    @Test
    void itIsMissingUntilTheBrokersFirstUpdate() {
        MetadataFreshness metadata = new MetadataFreshness();
        assertTrue(metadata.whyOld(false).contains("KAFKA-20746"));
        assertNull(metadata.whyOld(false), "reported once");
        metadata.updated();
        assertNull(metadata.whyOld(false));
    }

    @Test
    void aBrokerThatHasNeverPassedThemOnHasThoseOfAnotherSource() {
        assertTrue(new MetadataFreshness().whyOld(true).startsWith("shares of totals and of thresholds are those of before"));
        assertTrue(new MetadataFreshness().whyOld(false).startsWith("groups have the whole of their totals"));
    }

    @Test
    void aBrokerThatDoesNotCountItsFailuresIsBelieved() {
        MetadataFreshness metadata = new MetadataFreshness();
        metadata.updated();
        assertNull(metadata.whyOld(false));
        countFailures();
        assertNull(metadata.whyOld(false), "it is not known how many there were before");
    }

    /** A node that divides nothing by the leaders does not warn. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aNodeWarnsWhereSharesDependOnIt(boolean hasTotal) throws Exception {
        new TestDecision(directory).write("OPEN", 1);
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put(KquotaConfig.TOPICS_FILE, directory.resolve("topics.json").toString());
        properties.put("kquota.quota.groups", "orders");
        properties.put("kquota.quota.group.orders.principals", "User:orders");
        properties.put("kquota.quota.group.orders.produce" + (hasTotal ? ".total" : ""), "80M");
        if (hasTotal) {
            properties.put("kquota.quota.group.orders.topics", "orders-.*");
        }
        AtomicLong lateNanos = new AtomicLong();
        countFailures();
        try (BrokerNode node = new BrokerNode(new KquotaConfig(properties), new BootClock(), () -> System.nanoTime() + lateNanos.get())) {
            node.start();
            node.metadata(new Cluster("c", List.of(), List.of(), Set.of(), Set.of()));
            failures.incrementAndGet();
            assertEquals(0, node.errors().tally(Errors.Kind.METADATA).count());
            lateNanos.addAndGet(61_000_000_000L);
            if (hasTotal) {
                await("warned", () -> node.errors().tally(Errors.Kind.METADATA).count() == 1);
            }
            lateNanos.addAndGet(61_000_000_000L);
            Thread.sleep(500);
            assertEquals(hasTotal ? 1 : 0, node.errors().tally(Errors.Kind.METADATA).count());
        }
    }
}
