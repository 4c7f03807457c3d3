package org.kquota.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
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

    @AfterEach
    void removeMeters() {
        made.forEach(KafkaYammerMetrics.defaultRegistry()::removeMetric);
    }

    @Test
    void beforeTheBrokersMetersAreThereNothingHasLanded() {
        meter("BytesInPerSec", ",topic=orders").mark(7);
        assertFalse(landed.find());
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
        assertTrue(landed.find());
        assertEquals(877, landed.bytes());
        assertEquals(Set.of("orders"), landed.topics().keySet());
        assertEquals(600, landed.topics().get("orders").bytes());
        meter("BytesInPerSec", ",topic=clicks").mark(1);
        assertTrue(landed.find());
        assertEquals(Set.of("orders", "clicks"), landed.topics().keySet());
    }

    @Test
    void afterTheBrokersMetersWentNothingIsCounted() {
        meter("BytesInPerSec", "").mark(1_000);
        assertTrue(landed.find());
        removeMeters();
        assertFalse(landed.find());
        assertEquals(0, landed.bytes());
    }
}
