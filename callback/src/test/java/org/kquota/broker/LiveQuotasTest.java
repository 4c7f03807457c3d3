package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DeleteTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;

import javax.management.ObjectName;

/** Static quotas, groups of all types and controller mutations on a real broker, with Java clients. */
class LiveQuotasTest {
    private static final double KB = 1e3;
    private static final double LIMIT = 500 * KB;
    private static final double GROUP_LIMIT = 600 * KB;
    private static final long SECOND = 1_000_000_000L;
    private static final int MUTATIONS_PER_SECOND = 2;
    /** Kafka's default: 11 windows of a second. */
    private static final int TOKENS = MUTATIONS_PER_SECOND * 11;

    @TempDir
    private static Path directory;
    private static LiveBroker broker;

    @BeforeAll
    static void start() throws Exception {
        Map<String, String> settings = new HashMap<>(Map.of(
            "kquota.quota.produce.default", "500K",
            "kquota.quota.produce.overrides", "fast:50M",
            "kquota.quota.fetch.default", "1M",
            "kquota.quota.groups", "team,readers,callers"));
        settings.putAll(Map.of(
            "kquota.quota.group.team.principals", "User:alice",
            "kquota.quota.group.team.client.ids", "shared-*",
            "kquota.quota.group.team.produce", "600K",
            "kquota.quota.group.readers.client.ids", "~reader-[0-9]+",
            "kquota.quota.group.readers.fetch", "1M",
            // Next to nothing, in per cent of a thread: any call is above it.
            "kquota.quota.group.callers.client.ids", "caller-*",
            "kquota.quota.group.callers.request", "0.01"));
        broker = new LiveBroker(directory, settings);
        broker.decide("OPEN", 1, "enforce", 3_600_000);
        broker.awaitApplied("OPEN", applied -> applied.lost() == null);
    }

    @AfterAll
    static void stop() {
        if (broker != null) {
            broker.close();
        }
    }

    private static void quota(String kind, String name, String key, Double value) throws Exception {
        try (Admin admin = broker.admin()) {
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(Map.of(kind, name)),
                List.of(new ClientQuotaAlteration.Op(key, value))))).all().get();
        }
    }

    private static double mbean(String name, String attribute) throws Exception {
        return broker.jmx(connection -> ((Number) connection.getAttribute(new ObjectName("kafka.server:" + name), attribute)).doubleValue());
    }

    private static double maxOf(Map<?, ? extends Metric> metrics, String name) {
        return metrics.values().stream().filter(metric -> metric.metricName().name().equals(name))
            .mapToDouble(metric -> ((Number) metric.metricValue()).doubleValue()).filter(value -> !Double.isNaN(value)).max().orElse(-1);
    }

    @Test
    @Tag("B6")
    @Tag("B8")
    @Tag("B10")
    @Tag("B13")
    void aStaticQuotaDelaysOneClientAndNoOtherUntilTheStandardToolsSayOtherwise() throws Exception {
        try (Load held = new Load(broker, "carol", "clientE", "static", 2 * LIMIT);
             Load free = new Load(broker, "carol", "fast", "static", 2 * LIMIT)) {
            LiveBroker.await("throttled", () -> throttleTimeOf("Produce", "client-id=clientE") > 0, held::story);
            long from = System.nanoTime();
            Thread.sleep(6000);
            long to = System.nanoTime();
            double ratio = held.rate(from, to) / free.rate(from, to);
            assertTrue(ratio > 0.25 && ratio < 0.75, "the held client got " + ratio + " of the free one's rate");
            assertTrue(mbean("type=Produce,client-id=clientE", "byte-rate") > 0);

            quota(ClientQuotaEntity.CLIENT_ID, "clientE", "producer_byte_rate", 100 * LIMIT);
            Thread.sleep(4000); // the longest mute that was under way
            long freed = System.nanoTime();
            Thread.sleep(3000);
            ratio = held.rate(freed, System.nanoTime()) / free.rate(freed, System.nanoTime());
            assertTrue(ratio > 0.85, "freed by the standard tools, it got " + ratio);
            assertEquals(0, held.failed() + free.failed());
        } finally {
            quota(ClientQuotaEntity.CLIENT_ID, "clientE", "producer_byte_rate", null);
        }
    }

    private static double throttleTimeOf(String type, String tags) {
        return mbean("type=" + type + "," + tags, "throttle-time", 0);
    }

    /** Or what stands for it while there is none. */
    private static double mbean(String name, String attribute, double absent) {
        try {
            return mbean(name, attribute);
        } catch (javax.management.InstanceNotFoundException e) {
            return absent;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    @Tag("C4")
    @Tag("B13")
    void theMembersOfAGroupShareItsQuotaByPrincipalOrClientId() throws Exception {
        try (Load one = new Load(broker, "alice", "whatever", "grouped", GROUP_LIMIT);
             Load two = new Load(broker, "bob", "shared-2", "grouped", GROUP_LIMIT);
             Load free = new Load(broker, "bob", "fast", "grouped", GROUP_LIMIT)) {
            LiveBroker.await("throttled", () -> throttleTimeOf("Produce", "user=\"<group>team\"") > 0);
            long from = System.nanoTime();
            Thread.sleep(6000);
            long to = System.nanoTime();
            double together = (one.rate(from, to) + two.rate(from, to)) / free.rate(from, to);
            assertTrue(together > 0.5 && together < 1.4, "both together got " + together + " of the limit of one");
            assertEquals(0, one.failed() + two.failed() + free.failed());
        }
    }

    @Test
    @Tag("long")
    @Tag("C4")
    @Tag("C3")
    @Tag("B13")
    void aGroupHoldsItsMembersRequestsWhereItHasALimitOfThem() throws Exception {
        try (KafkaProducer<byte[], byte[]> one = broker.producer("carol", "caller-1");
             KafkaProducer<byte[], byte[]> two = broker.producer("dave", "caller-2");
             KafkaProducer<byte[], byte[]> free = broker.producer("dave", "fast")) {
            for (KafkaProducer<byte[], byte[]> producer : List.of(one, two, free)) {
                for (int i = 0; i < 4; i++) {
                    producer.send(new ProducerRecord<>("called", new byte[100])).get();
                }
            }
            assertTrue(throttleTimeOf("Request", "user=\"<group>callers\"") > 0);
            assertTrue(maxOf(one.metrics(), "produce-throttle-time-max") > 0);
            assertTrue(maxOf(two.metrics(), "produce-throttle-time-max") > 0, "whichever member has used it up");
            assertEquals(0, maxOf(free.metrics(), "produce-throttle-time-max"));
        }
    }

    @Test
    @Tag("B4")
    @Tag("B9")
    @Tag("B14")
    @Tag("C4")
    void aFetchIsBoundedAndDelayedBeforeItsBytesAreRead() throws Exception {
        double limit = 1e6;
        int megabytes = 10;
        try (KafkaProducer<byte[], byte[]> producer = broker.producer(LiveBroker.AGENT, "filler")) {
            for (int i = 0; i < megabytes * 10; i++) {
                producer.send(new ProducerRecord<>("fetched", new byte[100_000]));
            }
        }
        double unlimited = fetchSizeMax(LiveBroker.AGENT, "reader", megabytes * 1e6, 0.95);
        // The broker never reads more for a client than its quota allows in a window, whatever the client asks for.
        double limited = fetchSizeMax("carol", "reader", megabytes * 1e6, 0.4);
        assertTrue(limited <= limit * LiveBroker.WINDOW_SECONDS * 1.1, "a fetch of " + limited);
        assertTrue(unlimited > 2 * limited, "an exempt client's of " + unlimited);
        assertTrue(throttleTimeOf("Fetch", "client-id=reader") > 0);
        // A group is held in the same way, by a limit that its members share.
        assertTrue(fetchSizeMax("carol", "reader-1", megabytes * 1e6, 0.2) <= limit * LiveBroker.WINDOW_SECONDS * 1.1);
        assertTrue(throttleTimeOf("Fetch", "user=\"<group>readers\"") > 0);
    }

    /** Reads this part of the topic as this user; the largest fetch, in bytes. A user that is not exempt has to be delayed on the way. */
    private static double fetchSizeMax(String user, String clientId, double bytes, double part) {
        Map<String, Object> settings = broker.clientSettings(user, clientId);
        settings.put("fetch.max.bytes", 50_000_000);
        settings.put("max.partition.fetch.bytes", 50_000_000);
        settings.put("fetch.min.bytes", 10_000_000);
        settings.put("max.poll.records", 10_000);
        settings.put("enable.metrics.push", false);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            TopicPartition partition = new TopicPartition("fetched", 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = System.nanoTime() + 60 * SECOND;
            while (consumer.position(partition) * 1e5 < bytes * part) {
                assertTrue(System.nanoTime() < end, "read only " + consumer.position(partition) * 1e5 + " bytes");
                consumer.poll(Duration.ofMillis(100));
            }
            double throttled = maxOf(consumer.metrics(), "fetch-throttle-time-max");
            assertEquals(!user.equals(LiveBroker.AGENT), throttled > 0, user + " was throttled for " + throttled + " ms");
            assertEquals(throttled > 0, maxOf(consumer.metrics(), "fetch-throttle-time-avg") > 0);
            return maxOf(consumer.metrics(), "fetch-size-max");
        }
    }

    @Test
    @Tag("E8")
    @Tag("E9")
    @Tag("E10")
    @Tag("E12")
    void controllerMutationsAreHeldByTheirQuotaAndSucceedByRetrying() throws Exception {
        quota(ClientQuotaEntity.USER, "dave", "controller_mutation_rate", (double) MUTATIONS_PER_SECOND);
        CreateTopicsOptions once = new CreateTopicsOptions().retryOnQuotaViolation(false);
        int owed = 30;
        try (Admin admin = Admin.create(broker.clientSettings("dave", "topics"))) {
            awaitMutationQuota(admin, once);
            long asked = System.nanoTime();
            admin.createTopics(List.of(new NewTopic("burst", TOKENS + owed, (short) 1)), once).all().get();
            ThrottlingQuotaExceededException rejected = rejection(() -> admin.createTopics(List.of(new NewTopic("late", 1, (short) 1)), once).all().get());
            // Some of the debt is paid by then.
            double paid = (System.nanoTime() - asked) / 1e9;
            double left = rejected.throttleTimeMs() / 1e3;
            double debt = owed / (double) MUTATIONS_PER_SECOND;
            assertTrue(left > debt - paid - 3 && left < debt + 3, left + " s, by a debt of " + debt + " s, of which " + paid + " s may be paid");
            assertTrue(mbean("type=ControllerMutation,user=dave", "tokens") < 0);
            assertTrue(mbean("type=ControllerMutation,user=dave", "mutation-rate") > 0);
            // The controller leaves the waiting to the broker that was asked, which counts it among its requests.
            LiveBroker.await("for how long it has to wait", () -> throttleTimeOf("Request", "client-id=topics") > 0);

            // A time-out that is too short for the throttle ends in the very error, a longer one in success.
            rejectionOfImpatience();
            admin.createTopics(List.of(new NewTopic("late", 1, (short) 1)), new CreateTopicsOptions().timeoutMs(90_000)).all().get();
            // The controller has made it; the broker hears of it a moment later.
            LiveBroker.await("the topic is there", () -> topics(admin).contains("late"));

            admin.deleteTopics(List.of("burst"), new DeleteTopicsOptions().timeoutMs(90_000)).all().get();
            double tokens = mbean("type=ControllerMutation,user=dave", "tokens");
            assertTrue(tokens < -owed, "deleted partitions count: " + tokens);
        } finally {
            quota(ClientQuotaEntity.USER, "dave", "controller_mutation_rate", null);
        }
        try (Admin admin = Admin.create(broker.clientSettings("carol", "topics"))) {
            admin.createTopics(List.of(new NewTopic("unlimited", 3 * TOKENS, (short) 1)), once).all().get();
        }
    }

    /** The controller hears of a quota a moment after it was given. */
    private static void awaitMutationQuota(Admin admin, CreateTopicsOptions once) throws Exception {
        AtomicInteger number = new AtomicInteger();
        LiveBroker.await("the quota is in force", () -> {
            try {
                admin.createTopics(List.of(new NewTopic("probe-" + number.incrementAndGet(), 1, (short) 1)), once).all().get();
            } catch (InterruptedException | ExecutionException e) {
                throw new IllegalStateException(e);
            }
            return mbean("type=ControllerMutation,user=dave", "tokens", Double.MAX_VALUE) <= TOKENS;
        });
    }

    private static Set<String> topics(Admin admin) {
        try {
            return admin.listTopics().names().get();
        } catch (InterruptedException | ExecutionException e) {
            throw new IllegalStateException(e);
        }
    }

    /** By a client of its own: one that has been throttled sends nothing until its throttle time is over. */
    private static void rejectionOfImpatience() {
        try (Admin admin = Admin.create(broker.clientSettings("dave", "impatient"))) {
            rejection(() -> admin.createTopics(List.of(new NewTopic("late", 1, (short) 1)), new CreateTopicsOptions().timeoutMs(4000)).all().get());
        }
    }

    private interface Call {
        void run() throws Exception;
    }

    private static ThrottlingQuotaExceededException rejection(Call call) {
        return assertInstanceOf(ThrottlingQuotaExceededException.class, assertThrows(ExecutionException.class, call::run).getCause());
    }
}
