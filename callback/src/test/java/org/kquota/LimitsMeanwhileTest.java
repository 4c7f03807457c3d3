package org.kquota;

import static org.junit.jupiter.api.Assertions.assertNull;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.config.KquotaConfig;
import org.kquota.quota.Tags;

import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.Semaphore;

/**
 * The thread that decides hangs, and requests have the broker take over other limits meanwhile: those of the end of a lease, or of the glass that was
 * broken. When the thread goes on, what it finds is what held before, and so no change to it.
 */
class LimitsMeanwhileTest {
    private static final ClientQuotaType PRODUCE = ClientQuotaType.PRODUCE;
    private static final long LOOKS_AGAIN_MS = 6_000;

    @TempDir
    private Path directory;
    private TestDecision decision;
    private final KquotaCallback callback = new KquotaCallback();
    private final Metrics metrics = new Metrics();
    private final Semaphore looks = new Semaphore(0);
    private final Semaphore goesOn = new Semaphore(0);
    private volatile boolean hangs;

    /** A pause that has lasted for so long that nothing has the broker look at the limits of it any more. */
    @BeforeEach
    void aPause() throws Exception {
        decision = new TestDecision(directory);
        decision.write("PAUSE", 0);
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put(KquotaConfig.MODE, "enforce");
        properties.put(KquotaConfig.DECISION_LOST_ACTION, "open");
        callback.configure(properties);
        JmxReporter reporter = new JmxReporter();
        reporter.contextChange(new KafkaMetricsContext("kafka.server"));
        metrics.addReporter(reporter);
        // That thread reads this in each look, after it has worked out limits and before it publishes them to requests.
        Measurable rate = (config, nowMs) -> {
            if (hangs && Thread.currentThread().getName().startsWith("kquota-decision")) {
                looks.release();
                goesOn.acquireUninterruptibly();
            }
            return 0;
        };
        metrics.addMetric(new MetricName("byte-rate", "Produce", "", Tags.PAUSED), rate);
        Thread.sleep(LOOKS_AGAIN_MS);
        assertTrue(holds());
        theBrokerLooks();
        hangs = true;
        looks.acquire();
    }

    @AfterEach
    void close() {
        hangs = false;
        goesOn.release(Integer.MAX_VALUE / 4);
        callback.close();
        metrics.close();
    }

    private boolean holds() {
        return callback.quotaMetricTags(PRODUCE, new KafkaPrincipal("User", "alice"), "app").equals(Tags.PAUSED);
    }

    private void theBrokerLooks() {
        while (callback.quotaResetRequired(PRODUCE)) {
            Thread.onSpinWait();
        }
    }

    private void thatThreadLooks() throws InterruptedException {
        goesOn.release();
        looks.acquire();
    }

    @Test
    void ofALeaseThatIsRenewedTooLate() throws Exception {
        decision.write("PAUSE", 0, "enforce", 2_000);
        thatThreadLooks();
        thatThreadLooks();
        await("the end of the lease", () -> !holds());
        theBrokerLooksAgainWhenThePauseIsBack();
    }

    @Test
    void ofTheGlassThatWasMended() throws Exception {
        callback.reconfigure(Map.of(KquotaConfig.MODE, "observe"));
        assertTrue(!holds());
        callback.reconfigure(Map.of(KquotaConfig.MODE, "enforce"));
        theBrokerLooksAgainWhenThePauseIsBack();
    }

    private void theBrokerLooksAgainWhenThePauseIsBack() throws Exception {
        assertTrue(callback.quotaResetRequired(PRODUCE));
        assertNull(callback.quotaLimit(PRODUCE, Tags.PAUSED), "the broker has no limit for the pool now");
        decision.write("PAUSE", 0);
        while (!holds()) {
            theBrokerLooks();
            thatThreadLooks();
        }
        assertTrue(callback.quotaResetRequired(PRODUCE), "the limit of the pause holds again, and the broker has none");
    }
}
