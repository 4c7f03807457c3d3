package org.kquota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.kquota.TestDecision.await;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.apache.kafka.server.quota.QuotaType;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.kquota.config.KquotaConfig;
import org.kquota.quota.BrokerQuotas;
import org.kquota.quota.BrokerQuotasOfThisKafka;
import org.kquota.quota.ManualTime;
import org.kquota.quota.Tags;

import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/** Kafka's own quota class takes over changed limits on request threads, and without a lock. */
class LateLimitTest {
    private static final Map<String, String> APP = Tags.of("", "app");
    private static final double QUOTA = 2e6;

    /** A request thread that has asked for a limit, and waits before it goes on with it. */
    private static final class Waiting extends KquotaCallback {
        private final Map<String, String> waitsFor;
        private final CountDownLatch asked = new CountDownLatch(1);
        private final CountDownLatch goesOn = new CountDownLatch(1);
        private volatile Thread slow;

        Waiting(Map<String, String> waitsFor) {
            this.waitsFor = waitsFor;
        }

        @Override
        Double limit(ClientQuotaType type, Map<String, String> tags) {
            Double limit = super.limit(type, tags);
            if (Thread.currentThread() == slow && tags.equals(waitsFor)) {
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
        Waiting callback = new Waiting(APP);
        callback.configure(properties);
        try (Metrics metrics = new Metrics();
             BrokerQuotas quotas = new BrokerQuotasOfThisKafka(QuotaType.PRODUCE, metrics, new ManualTime(), 11, callback)) {
            quotas.update(null, "app", QUOTA);
            await("throttled", () -> boundAfterARequest(metrics, quotas, QuotaType.PRODUCE, APP) < QUOTA);
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
            await("free", () -> boundAfterARequest(metrics, quotas, QuotaType.PRODUCE, APP) == QUOTA);
            callback.goesOn.countDown();
            slow.join(60_000);
            assertTrue(bound(metrics, QuotaType.PRODUCE, APP) < QUOTA, "it wrote the limit of before");
            await("free in spite of it", () -> boundAfterARequest(metrics, quotas, QuotaType.PRODUCE, APP) == QUOTA);
        } finally {
            callback.goesOn.countDown();
            callback.close();
        }
    }

    /** No state holds anybody, so that nothing else has the broker look at the limits. */
    @ParameterizedTest
    @EnumSource(value = QuotaType.class, names = {"PRODUCE", "FETCH"})
    void aShareThatIsWrittenLateDoesNotOutliveTheMoveOfALeader(QuotaType type) throws Exception {
        Map<String, String> orders = Tags.of("<group>orders", "");
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put("kquota.quota.groups", "orders");
        properties.put("kquota.quota.group.orders.client.ids", "app");
        properties.put("kquota.quota.group.orders." + type.name().toLowerCase(Locale.ROOT) + ".total", "8M");
        properties.put("kquota.quota.group.orders.topics", "orders");
        Waiting callback = new Waiting(orders);
        callback.configure(properties);
        try (Metrics metrics = new Metrics();
             BrokerQuotas quotas = new BrokerQuotasOfThisKafka(type, metrics, new ManualTime(), 11, callback)) {
            callback.updateClusterMetadata(orders(4, 4));
            assertEquals(8e6, boundAfterARequest(metrics, quotas, type, orders));
            callback.updateClusterMetadata(orders(4, 3));
            Thread slow = new Thread(() -> quotas.record("alice", "app", 1));
            callback.slow = slow;
            slow.start();
            assertTrue(callback.asked.await(60, TimeUnit.SECONDS));
            callback.updateClusterMetadata(orders(4, 1));
            await("the share of now", () -> boundAfterARequest(metrics, quotas, type, orders) == 2e6);
            callback.goesOn.countDown();
            slow.join(60_000);
            assertEquals(6e6, bound(metrics, type, orders), "it wrote the share of before");
            await("the share in spite of it", () -> boundAfterARequest(metrics, quotas, type, orders) == 2e6);
        } finally {
            callback.goesOn.countDown();
            callback.close();
        }
    }

    /** A topic with this many partitions, of which this many are led here. */
    private static Cluster orders(int partitions, int here) {
        List<Node> nodes = List.of(new Node(1, "one", 1), new Node(2, "two", 2));
        List<PartitionInfo> infos = IntStream.range(0, partitions)
            .mapToObj(i -> new PartitionInfo("orders", i, nodes.get(i < here ? 0 : 1), new Node[0], new Node[0])).toList();
        return new Cluster("c", nodes, infos, Set.of(), Set.of());
    }

    private static double boundAfterARequest(Metrics metrics, BrokerQuotas quotas, QuotaType type, Map<String, String> tags) {
        quotas.record("alice", "app", 1);
        return bound(metrics, type, tags);
    }

    private static double bound(Metrics metrics, QuotaType type, Map<String, String> tags) {
        return metrics.metric(metrics.metricName("byte-rate", type.toString(), "", tags)).config().quota().bound();
    }
}
