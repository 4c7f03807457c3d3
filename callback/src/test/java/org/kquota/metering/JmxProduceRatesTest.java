package org.kquota.metering;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Metrics;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.kquota.BrokerMetrics;
import org.kquota.decision.State;
import org.kquota.govern.Governor;
import org.kquota.govern.GovernorSettings;
import org.kquota.quota.StockQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;
import org.kquota.quota.Tags;

import java.util.Map;
import java.util.OptionalDouble;

/** Rates from MBeans as Kafka's own reporter makes them, whole or not. */
class JmxProduceRatesTest {
    private final Metrics metrics = BrokerMetrics.reported();
    private final JmxProduceRates rates = new JmxProduceRates();

    @AfterEach
    void close() {
        metrics.close();
    }

    private void report(String attribute, Map<String, String> tags, double value) {
        metrics.addMetric(new MetricName(attribute, "Produce", "", tags), (config, nowMs) -> {
            if (Double.isNaN(value)) {
                throw new NullPointerException("it is being removed");
            }
            return value;
        });
    }

    @Test
    void aRateIsReadByItsTags() {
        Map<String, String> tags = Tags.of("CN%3Dapp", "a,b=*?");
        report("byte-rate", tags, 1_000);
        assertEquals(OptionalDouble.of(1_000), rates.bytesPerSecond(tags));
        assertEquals(OptionalDouble.of(1_000), rates.of(tags).bytesPerSecond());
        assertEquals(OptionalDouble.empty(), rates.bytesPerSecond(Tags.of("", "nobody")));
    }

    /** The rate and the throttle time of a client belong to sensors that expire apart. */
    @Test
    void whatHasOnlyAThrottleTimeHasNoRate() {
        report("throttle-time", Tags.PAUSED, 5);
        assertEquals(OptionalDouble.empty(), rates.bytesPerSecond(Tags.PAUSED));
    }

    @Test
    void whatCannotBeReadWhileItIsRemovedHasNoRate() {
        report("byte-rate", Tags.PAUSED, Double.NaN);
        assertEquals(OptionalDouble.empty(), rates.bytesPerSecond(Tags.PAUSED));
    }

    @Test
    @Tag("C13")
    void aRateThatCannotBeReadKeepsNoPauseFromBeginning() {
        report("throttle-time", Tags.PAUSED, 5);
        StockQuotas quotas = new StockQuotas(StockQuotas.LevelMemory.COUNTED);
        TagSets tagSets = new TagSets(quotas, 10);
        TagSet known = tagSets.of("alice", "app");
        Governor governor = new Governor(new GovernorSettings(11, 10, 1_048_576, 10, 1_048_576, 0.05), quotas, tagSets, new TagSet(Tags.PAUSED), new TagSet(Tags.NEWCOMERS), rates);
        report("throttle-time", known.tags(), 5);
        known.touch(0);
        governor.step(State.OPEN, 1, false, 0.1);
        governor.step(State.PAUSE, 0, false, 0.1);
        assertEquals(10, governor.figures().muteSeconds(), "the pool of a pause has a limit that mutes");
    }
}
