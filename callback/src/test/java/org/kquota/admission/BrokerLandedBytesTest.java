package org.kquota.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.MetricName;

import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** The meters are those of the broker in this JVM: here the test's. */
class BrokerLandedBytesTest {
    private final List<MetricName> made = new ArrayList<>();
    private final BrokerLandedBytes landed = new BrokerLandedBytes();

    private Meter meter(String name, String tags) {
        MetricName metric = new MetricName("kafka.server", "BrokerTopicMetrics", name, tags, "kafka.server:type=BrokerTopicMetrics,name=" + name + tags);
        made.add(metric);
        return KafkaYammerMetrics.defaultRegistry().newMeter(metric, "bytes", TimeUnit.SECONDS);
    }

    private boolean find() {
        return landed.find(0, topic -> false);
    }

    /** Some seconds pass in which this lands in the topic. */
    private double rate(String topic, Meter meter, long bytes, double seconds, boolean held) {
        meter.mark(bytes);
        landed.find(seconds, name -> held);
        return landed.topics().get(topic).rate();
    }

    @AfterEach
    void removeMeters() {
        made.forEach(KafkaYammerMetrics.defaultRegistry()::removeMetric);
    }

    @Test
    void beforeTheBrokersMetersAreThereNothingHasLanded() {
        meter("BytesInPerSec", ",topic=orders").mark(7);
        assertFalse(find());
        assertEquals(0, landed.bytes());
        assertEquals(Map.of(), landed.topics());
    }

    @Test
    void whatCoordinatorsAppendIsNoClients() {
        meter("BytesInPerSec", "").mark(1_000);
        meter("BytesInPerSec", ",topic=orders").mark(600);
        meter("BytesInPerSec", ",topic=__consumer_offsets").mark(100);
        meter("BytesInPerSec", ",topic=__transaction_state").mark(20);
        meter("BytesInPerSec", ",topic=__share_group_state").mark(3);
        meter("BytesInPerSec", ",topic=__remote_log_metadata").mark(50);
        meter("BytesOutPerSec", ",topic=orders").mark(9_999);
        meter("BytesInPerSec", ",partition=1").mark(9_999);
        assertTrue(find());
        assertEquals(877, landed.bytes());
        assertEquals(Set.of("orders"), landed.topics().keySet());
        assertEquals(600, landed.topics().get("orders").bytes());
        meter("BytesInPerSec", ",topic=clicks").mark(1);
        assertTrue(find());
        assertEquals(Set.of("orders", "clicks"), landed.topics().keySet());
    }

    /** Kafka removes a topic's meter once the broker leads none of its partitions; the total keeps what that meter counted. */
    @Test
    void whatCoordinatorsAppendedIsNoClientsOnceTheirMetersAreGone() {
        meter("BytesInPerSec", "").mark(1_000);
        Meter offsets = meter("BytesInPerSec", ",topic=__consumer_offsets");
        offsets.mark(100);
        assertTrue(find());
        offsets.mark(30);
        KafkaYammerMetrics.defaultRegistry().removeMetric(made.get(1));
        assertTrue(find());
        assertEquals(870, landed.bytes());
        assertTrue(find());
        assertEquals(870, landed.bytes(), "they are gone once");
        meter("BytesInPerSec", ",topic=__consumer_offsets").mark(7);
        assertTrue(find());
        assertEquals(863, landed.bytes(), "it leads one again");
    }

    @Test
    void aTotalThatBeginsAgainHasNothingOfMetersThatAreGone() {
        meter("BytesInPerSec", "").mark(1_000);
        meter("BytesInPerSec", ",topic=__consumer_offsets").mark(100);
        assertTrue(find());
        made.forEach(KafkaYammerMetrics.defaultRegistry()::removeMetric);
        meter("BytesInPerSec", "").mark(40);
        assertTrue(find());
        assertEquals(40, landed.bytes());
    }

    @Test
    void afterTheBrokersMetersWentNothingIsCounted() {
        meter("BytesInPerSec", "").mark(1_000);
        assertTrue(find());
        removeMeters();
        assertFalse(find());
        assertEquals(0, landed.bytes());
    }

    @Test
    void theRateOfATopicIsTheMeanOfItsLifeAndThenFollowsForTenSeconds() {
        meter("BytesInPerSec", "");
        find();
        Meter orders = meter("BytesInPerSec", ",topic=orders");
        assertEquals(20, rate("orders", orders, 100, 5, false), 1e-9, "it began within these seconds");
        assertEquals(100, rate("orders", orders, 500, 5, false), 1e-9);
        assertEquals(100, rate("orders", orders, 500, 5, false), 1e-9);
        double later = rate("orders", orders, 3_000, 10, false);
        // Of 20 whole seconds, the last ten count 1 - 1/e of (1 - 1/e²).
        assertEquals(100 + 200 * (1 - Math.exp(-1)) / (1 - Math.exp(-2)), later, 1e-9);
        assertEquals(300, rate("orders", orders, 60_000, 200, false), 1e-3);
    }

    @Test
    void whatATopicHadBeforeTheFirstLookIsNoRate() {
        meter("BytesInPerSec", "");
        Meter orders = meter("BytesInPerSec", ",topic=orders");
        orders.mark(1_000_000);
        assertEquals(0, rate("orders", orders, 0, 0, false));
        assertEquals(20, rate("orders", orders, 100, 5, false), 1e-9);
    }

    @Test
    void whileATopicIsHeldItsRateRisesButDoesNotFall() {
        meter("BytesInPerSec", "");
        find();
        Meter orders = meter("BytesInPerSec", ",topic=orders");
        assertEquals(100, rate("orders", orders, 500, 5, false), 1e-9);
        assertEquals(100, rate("orders", orders, 0, 5, true), 1e-9);
        assertEquals(100, rate("orders", orders, 50, 5, false), 1e-9, "a part of that time was held");
        assertTrue(rate("orders", orders, 5_000, 5, true) > 300);
        rate("orders", orders, 0, 5, false);
        assertEquals(10, rate("orders", orders, 2_000, 200, false), 1e-3);
    }

    @Test
    void aMeterThatBeginsAgainIsAnotherTopic() {
        meter("BytesInPerSec", "");
        find();
        Meter orders = meter("BytesInPerSec", ",topic=orders");
        rate("orders", orders, 500, 5, false);
        TopicBytes.Counter before = landed.topics().get("orders");
        find();
        assertEquals(before, landed.topics().get("orders"));
        KafkaYammerMetrics.defaultRegistry().removeMetric(made.get(1));
        assertEquals(40, rate("orders", meter("BytesInPerSec", ",topic=orders"), 200, 5, false), 1e-9);
        assertNotEquals(before, landed.topics().get("orders"));
    }
}
