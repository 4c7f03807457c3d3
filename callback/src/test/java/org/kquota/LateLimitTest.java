package org.kquota;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.kquota.TestDecision.await;

import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.apache.kafka.server.quota.QuotaType;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.quota.BrokerQuotas;
import org.kquota.quota.BrokerQuotasOfThisKafka;
import org.kquota.quota.ManualTime;
import org.kquota.quota.Tags;

import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Kafka's own quota class takes over changed limits on request threads, and without a lock. */
class LateLimitTest {
    private static final Map<String, String> APP = Tags.of("", "app");
    private static final double QUOTA = 2e6;

    /** A request thread that has asked for a limit, and waits before it goes on with it. */
    private static final class Waiting extends KquotaCallback {
        private final CountDownLatch asked = new CountDownLatch(1);
        private final CountDownLatch goesOn = new CountDownLatch(1);
        private volatile Thread slow;

        @Override
        Double limit(ClientQuotaType type, Map<String, String> tags) {
            Double limit = super.limit(type, tags);
            if (Thread.currentThread() == slow && tags.equals(APP)) {
                asked.countDown();
                try {
                    assertTrue(goesOn.await(60, TimeUnit.SECONDS));
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            }
            return limit;
        }
    }

    @TempDir
    private Path directory;

    @Test
    @Tag("C12")
    void aLimitThatIsWrittenLateDoesNotOutliveItsThrottle() throws Exception {
        TestDecision decision = new TestDecision(directory);
        decision.write("THROTTLE", 0.5);
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put(KquotaConfig.MODE, "enforce");
        Waiting callback = new Waiting();
        callback.configure(properties);
        try (Metrics metrics = new Metrics();
             BrokerQuotas quotas = new BrokerQuotasOfThisKafka(QuotaType.PRODUCE, metrics, new ManualTime(), 11, callback)) {
            quotas.update(null, "app", QUOTA);
            await("throttled", () -> boundAfterARequest(metrics, quotas) < QUOTA);
            Thread slow = new Thread(() -> {
                while (callback.asked.getCount() > 0) {
                    quotas.record("alice", "app", 1);
                }
            });
            callback.slow = slow;
            slow.start();
            for (double factor = 0.4; !callback.asked.await(1, TimeUnit.SECONDS); factor *= 0.9) {
                decision.write("THROTTLE", factor);
            }
            decision.write("OPEN", 1);
            await("free", () -> boundAfterARequest(metrics, quotas) == QUOTA);
            callback.goesOn.countDown();
            slow.join(60_000);
            assertTrue(bound(metrics) < QUOTA, "what it wrote is the limit of before");
            await("free in spite of it", () -> boundAfterARequest(metrics, quotas) == QUOTA);
        } finally {
            callback.goesOn.countDown();
            callback.close();
        }
    }

    private static double boundAfterARequest(Metrics metrics, BrokerQuotas quotas) {
        quotas.record("alice", "app", 1);
        return bound(metrics);
    }

    private static double bound(Metrics metrics) {
        return metrics.metric(metrics.metricName("byte-rate", "Produce", "", APP)).config().quota().bound();
    }
}
