package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.applied.AppliedState;
import org.kquota.applied.AppliedState.Mechanism;
import org.kquota.decision.Mode;
import org.kquota.decision.State;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

import javax.management.ObjectName;

/** The plug-in in a real broker, with real clients. */
class LiveBrokerTest {
    private static final double MB = 1e6;
    private static final long SECOND = 1_000_000_000L;

    @TempDir
    private static Path directory;
    private static LiveBroker broker;

    @BeforeAll
    static void start() throws Exception {
        broker = new LiveBroker(directory, Map.of());
    }

    @AfterAll
    static void stop() {
        if (broker != null) {
            broker.close();
        }
    }

    @BeforeEach
    void open() throws Exception {
        broker.decide("OPEN", 1);
        broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN && applied.lost() == null && applied.mode() == Mode.ENFORCE);
    }

    private static void quota(String user, String key, Double value) throws Exception {
        try (Admin admin = broker.admin()) {
            ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, user));
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op(key, value))))).all().get();
            // The controller answers before the broker has it.
            LiveBroker.await("the quota is there", () -> {
                try {
                    return Objects.equals(value, admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().getOrDefault(entity, Map.of()).get(key));
                } catch (InterruptedException | ExecutionException e) {
                    throw new IllegalStateException(e);
                }
            });
        }
    }

    private static void brokerMode(String mode) throws Exception {
        try (Admin admin = broker.admin()) {
            AlterConfigOp change = new AlterConfigOp(new ConfigEntry("kquota.mode", mode),
                mode == null ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.BROKER, "1"), List.of(change))).all().get();
        }
    }

    private static List<Future<RecordMetadata>> send(KafkaProducer<byte[], byte[]> producer, String topic, int records, int bytes) {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int i = 0; i < records; i++) {
            sent.add(producer.send(new ProducerRecord<>(topic, new byte[bytes])));
        }
        return sent;
    }

    private static double secondsSince(long nanos) {
        return (System.nanoTime() - nanos) / 1e9;
    }

    private static double maxOf(Map<?, ? extends Metric> metrics, String name) {
        return metrics.values().stream().filter(metric -> metric.metricName().name().equals(name))
            .mapToDouble(metric -> ((Number) metric.metricValue()).doubleValue()).filter(value -> !Double.isNaN(value)).max().orElse(-1);
    }

    private static Set<String> quotaTypesWithUser(String user) throws Exception {
        return broker.jmx(connection -> {
            Set<String> types = new TreeSet<>();
            for (ObjectName name : connection.queryNames(new ObjectName("kafka.server:user=" + user + ",*"), null)) {
                types.add(name.getKeyProperty("type"));
            }
            return types;
        });
    }

    @Test
    @Tag("F28")
    @Tag("A17")
    void aPauseStopsProducersButNotTheAgentAndEndsPromptly() throws Exception {
        try (Load load = new Load(broker, "alice", "app", "paused", 5 * MB);
             Load agent = new Load(broker, LiveBroker.AGENT, "kquota-1-publish", "usage", MB)) {
            Thread.sleep(6000);
            long paused = System.nanoTime();
            double before = load.rate(paused - 3 * SECOND, paused);
            broker.decide("PAUSE", 0);
            broker.awaitApplied("PAUSE by the governor", state -> state.mechanism() == Mechanism.GOVERNOR);
            long applied = System.nanoTime();
            Thread.sleep(15_000);
            long released = System.nanoTime();
            broker.decide("OPEN", 1);
            broker.awaitApplied("released", state -> state.mechanism() == Mechanism.NONE);
            Thread.sleep(9000);
            long end = System.nanoTime();

            // One connection lands one request for each delay, and delays grow with the pause. A share of the rate before would ask how busy this machine is.
            double seconds = (released - paused) / 1e9;
            double law = Load.LARGEST_REQUEST_BYTES * (3 + 2 * Math.log(seconds / 2)) + before * (applied - paused) / 1e9;
            long leaked = load.bytes(paused, released);
            assertTrue(leaked <= law, leaked + " bytes leaked in " + seconds + " s, the law allows " + law);
            long late = load.bytes(released - 5 * SECOND, released);
            assertTrue(late <= 2 * Load.LARGEST_REQUEST_BYTES, late + " bytes leaked in the last 5 s, where delays are longer than that");
            double agentsRate = agent.rate(paused, released) / agent.rate(paused - 3 * SECOND, paused);
            assertTrue(agentsRate > 0.5, "the agent must not be held, and has this of its rate before: " + agentsRate);
            // D is half of what the pause lasted, at most 10 s; a quarter more for a machine that is busy.
            double silence = load.longestSilence(released, end) / ((released - paused) / 1e9);
            assertTrue(silence < 0.5 + 0.25, "silent after the release for " + silence + " of the pause");
            LiveBroker.await("the rate is back", () -> load.rate(System.nanoTime() - 4 * SECOND, System.nanoTime()) > 0.5 * before);
            assertEquals(0, load.failed() + agent.failed());
        }
    }

    @Test
    @Tag("A7")
    void aThrottleComesNearTheFactorWithoutLongSilence() throws Exception {
        try (Load load = new Load(broker, "bob", "app", "throttled", 3 * MB);
             Load exempt = new Load(broker, LiveBroker.AGENT, "kquota-1-publish", "exempt", MB)) {
            Thread.sleep(12_000);
            long throttled = System.nanoTime();
            double before = load.rate(throttled - 10 * SECOND, throttled);
            broker.decide("THROTTLE", 0.4);
            Thread.sleep(14_000);
            long released = System.nanoTime();
            AppliedState applied = broker.applied();
            broker.decide("OPEN", 1);
            // On a busy machine no rate is steady: the baseline, which is an average, is what the factor is of.
            double baseline = applied.governor().baselineByteRate();
            assertEquals(1, baseline / before, 0.5, "the baseline, of the rate before; " + applied.governor());
            double ratio = load.rate(released - 9 * SECOND, released) / baseline;
            // A busy machine slows all producers, the exempt one too; never may more land.
            double machine = Math.min(1, exempt.rate(released - 9 * SECOND, released) / exempt.rate(throttled - 10 * SECOND, throttled));
            System.out.printf("%.2f of the baseline at a factor of 0.4, where the machine keeps %.2f%n", ratio, machine);
            assertTrue(ratio > 0.2 * machine && ratio < 0.6, ratio + " of the baseline, where the machine keeps " + machine + "; " + applied.governor());
            double silence = load.longestSilence(throttled, released) / ((released - throttled) / 1e9);
            assertTrue(silence < 0.5, "silent for " + silence + " of the throttle");
            assertEquals(State.THROTTLE, applied.state());
            assertEquals(0.4, applied.factor());
            assertEquals(0, load.failed() + exempt.failed());
        }
    }

    @Test
    @Tag("C1")
    @Tag("C3")
    @Tag("B14")
    void allQuotaTypesAreServedAndOnlyProduceIsHeld() throws Exception {
        try (Admin admin = broker.admin()) {
            admin.createTopics(List.of(new NewTopic("served", 1, (short) 1))).all().get();
        }
        int records = 300;
        try (KafkaProducer<byte[], byte[]> producer = broker.producer("carol", "app")) {
            for (Future<RecordMetadata> sent : send(producer, "served", records, 10_000)) {
                sent.get();
            }
            assertEquals(0, maxOf(producer.metrics(), "produce-throttle-time-max"));
            assertEquals(0, maxOf(producer.metrics(), "produce-throttle-time-avg"));
        }
        broker.decide("PAUSE", 0);
        broker.awaitApplied("PAUSE", applied -> applied.mechanism() == Mechanism.GOVERNOR);
        assertEquals(0, maxOf(consume("carol", records), "fetch-throttle-time-max"), "consumers are the remedy");
        try (Admin carol = Admin.create(broker.clientSettings("carol", "app"))) {
            carol.createTopics(List.of(new NewTopic("made-in-pause", 1, (short) 1))).all().get();
            carol.deleteTopics(List.of("made-in-pause")).all().get();
        }
        quota("carol", "consumer_byte_rate", 500_000.0);
        // The controller answers before the broker has the quota.
        LiveBroker.await("the consumer is slowed by its quota", () -> maxOf(consume("carol", records), "fetch-throttle-time-max") > 0);
        quota("carol", "consumer_byte_rate", null);
        quota("carol", "controller_mutation_rate", 1.0);
        quota("carol", "request_percentage", 200.0);
        AtomicInteger topics = new AtomicInteger();
        try (Admin carol = Admin.create(broker.clientSettings("carol", "app"))) {
            // The controller's own part of the node has its quota at another moment than the broker's.
            LiveBroker.await("all types are metered", () -> {
                try {
                    carol.createTopics(List.of(new NewTopic("mutated-" + topics.incrementAndGet(), 1, (short) 1))).all().get();
                    return quotaTypesWithUser("carol").containsAll(Set.of("Fetch", "Request", "ControllerMutation"));
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
        }
        quota("carol", "controller_mutation_rate", null);
        quota("carol", "request_percentage", null);
    }

    private static Map<?, ? extends Metric> consume(String user, int records) {
        Map<String, Object> settings = broker.clientSettings(user, "app");
        settings.put("auto.offset.reset", "earliest");
        settings.put("fetch.max.bytes", 1_000_000);
        settings.put("enable.metrics.push", false);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            TopicPartition partition = new TopicPartition("served", 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            Collection<ConsumerRecord<byte[], byte[]>> seen = new ArrayList<>();
            long end = System.nanoTime() + 60 * SECOND;
            while (seen.size() < records && System.nanoTime() < end) {
                consumer.poll(Duration.ofMillis(200)).forEach(seen::add);
            }
            assertEquals(records, seen.size());
            return Map.copyOf(consumer.metrics());
        }
    }

    @Test
    @Tag("B8")
    @Tag("B13")
    @Tag("B14")
    @Tag("C12")
    void overAQuotaIsADelayNeverAnErrorAndCanBeSeen() throws Exception {
        quota("dave", "producer_byte_rate", MB);
        try (KafkaProducer<byte[], byte[]> producer = broker.producer("dave", "app")) {
            long from = System.nanoTime();
            List<Future<RecordMetadata>> sent = send(producer, "over-quota", 600, 10_000);
            for (Future<RecordMetadata> record : sent) {
                record.get();
            }
            double held = secondsSince(from);
            assertEquals(599, sent.get(599).get().offset(), "everything is in the log, once");
            assertTrue(maxOf(producer.metrics(), "produce-throttle-time-max") > 0);
            assertTrue(maxOf(producer.metrics(), "produce-throttle-time-avg") > 0);
            double[] seen = broker.jmx(connection -> {
                ObjectName name = new ObjectName("kafka.server:type=Produce,user=dave");
                return new double[] {(Double) connection.getAttribute(name, "byte-rate"), (Double) connection.getAttribute(name, "throttle-time")};
            });
            assertTrue(seen[0] > 0 && seen[1] > 0, "byte-rate " + seen[0] + ", throttle-time " + seen[1]);
            quota("dave", "producer_byte_rate", null);
            from = System.nanoTime();
            for (Future<RecordMetadata> record : send(producer, "over-quota", 600, 10_000)) {
                record.get();
            }
            double free = secondsSince(from);
            assertTrue(free < held / 2, free + " s without the quota, " + held + " s with it");
        }
    }

    @Test
    @Tag("C12")
    void theModeIsTheBreakGlassAndChangesLive() throws Exception {
        broker.decide("PAUSE", 0);
        broker.awaitApplied("held", applied -> applied.mechanism() == Mechanism.GOVERNOR);
        brokerMode("observe");
        AppliedState applied = broker.awaitApplied("observed", state -> state.mechanism() == Mechanism.NONE);
        assertEquals(State.PAUSE, applied.state());
        assertEquals(Mode.OBSERVE, applied.brokerMode());
        brokerMode(null);
        broker.awaitApplied("held again, by server.properties", state -> state.mechanism() == Mechanism.GOVERNOR);
        java.util.concurrent.ExecutionException refused = org.junit.jupiter.api.Assertions.assertThrows(
            java.util.concurrent.ExecutionException.class, () -> brokerMode("off"));
        assertTrue(refused.getMessage().contains("kquota.mode"), refused.getMessage());
    }

    /** At least a request for each connection, and besides what the pool lets in, F each D, which it has to itself here. */
    @Test
    @Tag("long")
    @Tag("F28")
    void aProducerThatReconnectsInAPauseIsHeldByThePool() throws Exception {
        try (Reconnecting reconnecting = new Reconnecting(broker, "carol", "reconnected")) {
            LiveBroker.await("it produces", () -> reconnecting.connections() >= 5);
            double free = (double) reconnecting.landed() / reconnecting.connections();
            broker.decide("PAUSE", 0);
            broker.awaitApplied("PAUSE", applied -> applied.mechanism() == Mechanism.GOVERNOR);
            // Until D is 6 s.
            Thread.sleep(12_000);
            long landed = reconnecting.landed();
            long connections = reconnecting.connections();
            LiveBroker.await("it reconnects", () -> reconnecting.connections() >= connections + 8);
            double held = (double) (reconnecting.landed() - landed) / (reconnecting.connections() - connections);
            System.out.printf("requests for each connection: %.1f in OPEN, %.1f in PAUSE%n", free, held);
            assertTrue(held < 0.5 * free, "requests for each connection: " + free + " in OPEN, " + held + " in PAUSE");
        }
    }

    @Test
    @Tag("F21")
    void aDecisionThatCannotBeTrustedIsLost() throws Exception {
        Path file = broker.decisionFile();
        Path aside = directory.resolve("aside.json");
        Files.writeString(aside, broker.decision("OPEN", 1, "enforce", 60_000));
        Files.setPosixFilePermissions(aside, PosixFilePermissions.fromString("rw-r--r--"));
        // In one step: the plug-in may look between two, and then it is missing.
        Path link = Files.createSymbolicLink(directory.resolve("link.json"), aside);
        Files.move(link, file, StandardCopyOption.ATOMIC_MOVE);
        assertLost("symbolic link");
        open();
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-rw-rw-"));
        assertLost("writable");
        open();
        broker.replaceDecision("{\"schema_version\": 1");
        assertLost("JSON");
        open();
        Files.delete(file);
        assertLost("missing");
        open();
        broker.decide("OPEN", 1, "enforce", 1500);
        assertLost("ran out");
    }

    private static void assertLost(String because) throws Exception {
        AppliedState applied = broker.awaitApplied("lost, " + because, state -> state.lost() != null);
        assertTrue(applied.lost().contains(because), applied.lost());
        assertEquals(State.PAUSE, applied.state());
        assertEquals(Mechanism.GOVERNOR, applied.mechanism());
    }

    @Test
    void theReportIsComplete() throws Exception {
        try (Admin admin = broker.admin()) {
            admin.describeCluster().nodes().get();
        }
        AppliedState applied = broker.awaitApplied("the agent is seen exempt",
            state -> state.exempt().stream().anyMatch(exempt -> exempt.clientIds().contains("kquota-1-admin")));
        assertEquals("User:" + LiveBroker.AGENT, applied.exempt().get(0).principal());
        assertEquals(broker.process().pid(), applied.pid());
        assertEquals("0.1.0", applied.pluginVersion());
        assertEquals(List.of(), applied.offlineLogDirs());
        for (AppliedState.LogDir logDir : applied.logDirs()) {
            assertEquals(Files.getAttribute(Path.of(logDir.path()), "unix:dev"), logDir.device());
            assertEquals(Files.getAttribute(Path.of(logDir.path()), "unix:ino"), logDir.inode());
        }
        assertFalse(applied.logDirs().isEmpty());
        broker.awaitApplied("it is rewritten", later -> later.writtenUptimeMs() > applied.writtenUptimeMs());
        assertTrue(applied.errors().stream().filter(error -> !error.kind().equals("decision")).allMatch(error -> error.count() == 0),
            applied.errors().toString());
        if (LiveBroker.HAS_METRICS) {
            assertMetrics();
        }
    }

    private void assertMetrics() throws Exception {
        Set<String> metrics = broker.jmx(connection -> {
            Set<String> found = new TreeSet<>();
            for (ObjectName name : connection.queryNames(new ObjectName("kafka.server:type=plugins,class=KquotaCallback,role=broker,*"), null)) {
                for (var attribute : connection.getMBeanInfo(name).getAttributes()) {
                    found.add(attribute.getName());
                }
            }
            return found;
        });
        assertTrue(metrics.containsAll(Set.of("state", "factor", "enforcing", "decision-lost", "decision-lease-seconds", "errors-total",
            "tag-sets")), metrics.toString());
    }
}
