package org.kquota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.kquota.TestDecision.await;

import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.Measurable;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.applied.AppliedReport;
import org.kquota.config.KquotaConfig;
import org.kquota.decision.BootClock;
import org.kquota.decision.Mode;
import org.kquota.error.Errors;
import org.kquota.node.BrokerNode;
import org.kquota.node.Nodes;
import org.kquota.quota.Tags;

import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.Semaphore;

/** kquota.mode is set to observe while a pause is enforced. */
class BreakGlassTest {
    private static final ClientQuotaType PRODUCE = ClientQuotaType.PRODUCE;

    @TempDir
    private Path directory;
    private TestDecision decision;
    private Map<String, Object> properties;
    private KquotaCallback callback;
    /** A thread that hangs waits for this. */
    private final Semaphore goesOn = new Semaphore(0);

    @BeforeEach
    void aPauseIsEnforced() throws Exception {
        decision = new TestDecision(directory);
        decision.write("PAUSE", 0);
        properties = TestProperties.broker(directory);
        properties.put(KquotaConfig.MODE, "enforce");
        callback = new KquotaCallback();
        callback.configure(properties);
        assertTrue(holds());
    }

    @AfterEach
    void close() {
        goesOn.release(Integer.MAX_VALUE / 4);
        callback.close();
    }

    private boolean holds() {
        return callback.quotaMetricTags(PRODUCE, new KafkaPrincipal("User", "alice"), "app").equals(Tags.PAUSED);
    }

    @Test
    void aReportRightAfterItIsWritten() {
        BrokerNode node = Nodes.acquire(new KquotaConfig(properties), new BootClock());
        try {
            // No thread of its own looks or writes meanwhile.
            node.close();
            long before = node.errors().tally(Errors.Kind.APPLIED_FILE).count();
            node.brokerMode(Mode.OBSERVE);
            new AppliedReport(node).write();
            Errors.Tally tally = node.errors().tally(Errors.Kind.APPLIED_FILE);
            assertEquals(before, tally.count(), tally.lastMessage());
        } finally {
            Nodes.release(node);
        }
    }

    /** The thread that decides reads this rate in each look, between working out what holds and saying so to requests. */
    @Test
    @Tag("C12")
    void producersAreFreeThoughTheThreadThatDecidesHangs() throws Exception {
        Semaphore looks = new Semaphore(0);
        try (Metrics metrics = new Metrics()) {
            JmxReporter reporter = new JmxReporter();
            reporter.contextChange(new KafkaMetricsContext("kafka.server"));
            metrics.addReporter(reporter);
            Measurable hangs = (config, nowMs) -> {
                looks.release();
                goesOn.acquireUninterruptibly();
                return 0;
            };
            metrics.addMetric(new MetricName("byte-rate", "Produce", "", Tags.PAUSED), hangs);
            looks.acquire();
            while (callback.quotaResetRequired(PRODUCE)) {
                Thread.onSpinWait();
            }
            callback.reconfigure(Map.of(KquotaConfig.MODE, "observe"));
            assertFalse(holds());
            assertTrue(callback.quotaResetRequired(PRODUCE), "the broker must look at the limits again");
            goesOn.release();
            looks.acquire();
            assertFalse(holds(), "its earlier result came too late");
            goesOn.release(Integer.MAX_VALUE / 4);
            callback.reconfigure(Map.of(KquotaConfig.MODE, "enforce"));
            await("PAUSE", this::holds);
        }
    }
}
