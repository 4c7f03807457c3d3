package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.KquotaCallback;
import org.kquota.TestProperties;

import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** KIP-599's worked example on the broker's own quota class for controller mutations, with the plug-in: 5 partitions per second, 100 windows of 1 s. */
class ControllerMutationTest {
    private static final int WINDOWS = 100;
    private static final int QUOTA = 5;
    private static final int BURST = 7 * 80;

    @TempDir
    private Path directory;
    private final ManualTime time = new ManualTime();
    private final Metrics metrics = new Metrics(time);
    private final KquotaCallback callback = new KquotaCallback();
    private MutationQuotas quotas;

    @BeforeEach
    void start() {
        callback.configure(TestProperties.broker(directory));
        quotas = new MutationQuotasOfThisKafka(metrics, time, WINDOWS, callback);
        quotas.update("alice", QUOTA);
    }

    @AfterEach
    void stop() {
        quotas.close();
        callback.close();
        metrics.close();
    }

    private double metric(String name) {
        return metrics.metrics().entrySet().stream()
            .filter(entry -> entry.getKey().name().equals(name) && entry.getKey().group().equals("ControllerMutation")
                && entry.getKey().tags().equals(Map.of("user", "alice", "client-id", "")))
            .map(Map.Entry::getValue).mapToDouble(ControllerMutationTest::value).findAny().orElseThrow();
    }

    private static double value(KafkaMetric metric) {
        return ((Number) metric.metricValue()).doubleValue();
    }

    @Test
    @Tag("E3")
    @Tag("E4")
    @Tag("E5")
    @Tag("E8")
    void aBurstIsAdmittedOnceAndThenThrottledForTwelveSeconds() {
        assertEquals(0, quotas.mutate("alice", "app", BURST), "500 tokens are there, and they may go negative");
        assertEquals(-60, metric("tokens"));
        assertEquals(12_000, quotas.mutate("alice", "app", 1));
        assertEquals(-60, metric("tokens"), "a rejected request costs nothing");
    }

    @Test
    @Tag("E4")
    @Tag("E6")
    void atMinusSixtyAllIsRejectedUntilTwelveSecondsHavePassed() {
        quotas.mutate("alice", "app", BURST);
        time.advance(11_999);
        assertTrue(quotas.mutate("alice", "app", 1) > 0);
        time.advance(1);
        assertEquals(0, metric("tokens"), 1e-9);
        assertEquals(0, quotas.mutate("alice", "app", 1), "admitted at exactly 0");
        assertEquals(-1, metric("tokens"), 1e-9);
    }

    @Test
    @Tag("E3")
    @Tag("E6")
    void howeverLongItIdlesThereAreNeverMoreThanFiveHundredTokens() {
        quotas.mutate("alice", "app", 200);
        assertEquals(300, metric("tokens"));
        time.advance(20_000);
        assertEquals(400, metric("tokens"), "5 more each second");
        time.advance(3_600_000);
        assertEquals(500, metric("tokens"));
    }

    @Test
    @Tag("E10")
    void rateTokensAndThrottleTimeCanBeSeenByUserAndClientId() {
        quotas.mutate("alice", "app", BURST);
        assertTrue(metric("tokens") < 0);
        assertTrue(metric("mutation-rate") > QUOTA);
        // The broker measures how long it has throttled as it answers.
        assertTrue(metrics.metrics().keySet().stream().anyMatch(name -> name.name().equals("throttle-time")
            && name.group().equals("ControllerMutation") && name.tags().keySet().containsAll(Set.of("user", "client-id"))));
    }

    @Test
    @Tag("E9")
    @Tag("C3")
    void whoHasNoSuchQuotaIsAdmittedAndAnExemptPrincipalIsNotExemptFromThisOne() {
        assertEquals(0, quotas.mutate("bob", "app", 100_000));
        assertEquals(0, quotas.mutate("bob", "app", 100_000));
        quotas.update("admin", QUOTA);
        assertEquals(0, quotas.mutate("admin", "app", BURST));
        assertEquals(12_000, quotas.mutate("admin", "app", 1));
    }

    /** Kafka's rate with the document's windows; its own running window is one more. */
    private Sensor rate() {
        Sensor sensor = metrics.sensor("burst", new MetricConfig().timeWindow(1, TimeUnit.SECONDS).samples(WINDOWS + 1).quota(Quota.upperBound(QUOTA)));
        sensor.add(new MetricName("rate", "burst", "", Map.of()), new Rate());
        return sensor;
    }

    private double observed() {
        return value(metrics.metric(new MetricName("rate", "burst", "", Map.of())));
    }

    @Test
    @Tag("E1")
    void theAverageOfABurstAsksForTwelveSecondsToo() {
        Sensor sensor = rate();
        QuotaViolationException violation = assertThrows(QuotaViolationException.class, () -> sensor.record(BURST, time.milliseconds(), true));
        assertEquals(5.6, violation.value(), 1e-9);
        // (R − Q) / Q · S · W
        assertEquals(12.0, (violation.value() - violation.bound()) / violation.bound() * WINDOWS, 1e-9);
    }

    @Test
    @Tag("E7")
    void theTokensSpreadABurstAndTheBrokersRateDoesNot() {
        assertEquals(0, quotas.mutate("alice", "app", BURST));
        // The broker's sensor measures over the samples of the broker's metrics, 2 x 30 s by default, and not over the quota's windows.
        assertEquals(BURST / 30.0, metric("mutation-rate"), 1e-9);
        time.advance(12_000);
        assertEquals(0, metric("tokens"), 1e-9);
        assertEquals(BURST / 42.0, metric("mutation-rate"), 1e-9, "the whole burst is still there, at 13 a second");
        assertEquals(0, quotas.mutate("alice", "app", 0), "admitted by the tokens, far over the quota by the rate");
        time.advance(60_000);
        assertEquals(0, metric("mutation-rate"), "it is gone with its sample, while the tokens come back one by one");
        assertEquals(60 * QUOTA, metric("tokens"), 1e-9);
    }

    @Test
    @Tag("E7")
    void alsoOverTheQuotasWindowsARateKeepsABurstInOneSample() {
        Sensor sensor = rate();
        sensor.record(BURST, time.milliseconds(), false);
        for (int second = 0; second <= WINDOWS; second++) {
            assertEquals(5.6, observed(), 1e-9, "spread over the windows it would be back at 5 after 12 s");
            assertThrows(QuotaViolationException.class, () -> sensor.checkQuotas(time.milliseconds()));
            time.advance(1000);
        }
        assertEquals(0, observed());
        sensor.checkQuotas(time.milliseconds());
    }
}
