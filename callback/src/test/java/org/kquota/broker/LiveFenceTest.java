package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.applied.AppliedState;
import org.kquota.applied.AppliedState.Mechanism;
import org.kquota.decision.State;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

/** The fence in a real broker, with real clients. */
class LiveFenceTest {
    private static final double MB = 1e6;
    private static final String UNEXPECTED = "Unexpected error handling request";
    /** The controller listener has no authentication here, so the controllers are anonymous. */
    static final Map<String, String> FENCED = Map.of("authorizer.class.name", LiveBroker.AUTHORIZER,
        "super.users", "User:" + LiveBroker.AGENT + ";User:ANONYMOUS", "allow.everyone.if.no.acl.found", "true",
        "transaction.state.log.replication.factor", "1", "transaction.state.log.min.isr", "1", "transaction.state.log.num.partitions", "1");

    @TempDir
    private Path directory;

    /** Every way to produce, a topic for each. */
    private static final Map<String, Map<String, Object>> PRODUCERS = new TreeMap<>(Map.of(
        "idempotent", Map.of("acks", "all", "enable.idempotence", true),
        "acks-all", Map.of("acks", "all", "enable.idempotence", false),
        "acks-one", Map.of("acks", "1", "enable.idempotence", false),
        "acks-none", Map.of("acks", "0", "enable.idempotence", false),
        "transactional", Map.of("transactional.id", "a-transaction")));

    @Test
    @Tag("C3")
    @Tag("F28")
    @Tag("A17")
    void aPauseLetsNotAByteInAndTheRemediesGoOnAndProducersComeBackSoon() throws Exception {
        Map<String, Load> loads = new TreeMap<>();
        try (LiveBroker broker = new LiveBroker(directory, FENCED)) {
            broker.decide("OPEN", 1);
            broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN && applied.lost() == null);
            try (Admin admin = broker.admin(); Load agent = new Load(broker, LiveBroker.AGENT, "kquota-1-publish", "usage", MB / 10)) {
                admin.createTopics(PRODUCERS.keySet().stream().map(topic -> new NewTopic(topic, 1, (short) 1)).toList()).all().get();
                PRODUCERS.forEach((topic, settings) -> loads.put(topic, new Load(broker, "alice", topic, topic, MB / 2, settings)));
                for (Load load : loads.values()) {
                    LiveBroker.await("all producers produce", () -> load.bytes(0, System.nanoTime()) > MB / 2, load::story);
                }
                broker.decide("PAUSE", 0);
                broker.awaitApplied("PAUSE by the fence", applied -> applied.mechanism() == Mechanism.FENCE);
                LiveBroker.await("transactions that were committed before have their ends", () -> noneIsEnding(admin));
                Map<String, Long> ends = LiveBroker.atRest("requests authorized before are appended", () -> endOffsets(admin));
                long paused = System.nanoTime();
                long refusals = broker.applied().fence().refusals();
                theRemediesGoOn(broker, ends);
                Thread.sleep(8000);
                assertEquals(ends, endOffsets(admin), "no record and no transaction marker may land");
                long released = System.nanoTime();
                AppliedState held = broker.awaitApplied("a report of the pause", applied -> applied.fence().refusals() > refusals);
                assertTrue(held.fence().installed());
                assertTrue(agent.bytes(paused, released) > 0.5 * MB / 10 * (released - paused) / 1e9, "the agent is not held");

                broker.decide("OPEN", 1);
                released = System.nanoTime();
                long pauseNanos = released - paused;
                for (Map.Entry<String, Load> load : loads.entrySet()) {
                    String topic = load.getKey();
                    LiveBroker.await(topic + " flows again", () -> endOffset(admin, topic) > ends.get(topic), load.getValue()::story);
                    double seconds = (System.nanoTime() - released) / 1e9;
                    System.out.printf("%s flows again %.2f s after a pause of %.1f s%n", topic, seconds, pauseNanos / 1e9);
                    assertTrue(seconds < 0.5 * pauseNanos / 1e9, topic + " is back after " + seconds + " s");
                }
                for (Map.Entry<String, Load> load : loads.entrySet()) {
                    assertEquals(0, load.getValue().failed(), load.getKey());
                }
                assertEquals(0, agent.failed());
                broker.awaitApplied("OPEN", applied -> applied.mechanism() == Mechanism.NONE);
                assertFalse(broker.log().contains(UNEXPECTED), "refusals must not fill the log");
            } finally {
                loads.values().forEach(Load::close);
            }
        }
    }

    private static void theRemediesGoOn(LiveBroker broker, Map<String, Long> ends) throws Exception {
        Map<String, Object> settings = broker.clientSettings("bob", "reader");
        settings.putAll(Map.of("group.id", "readers", "auto.offset.reset", "earliest", "enable.auto.commit", false, "enable.metrics.push", false));
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of("idempotent", "acks-none"));
            TopicPartition first = new TopicPartition("idempotent", 0);
            TopicPartition second = new TopicPartition("acks-none", 0);
            LiveBroker.await("everything is read", () -> {
                consumer.poll(Duration.ofMillis(200));
                return consumer.assignment().size() == 2 && consumer.position(first) == ends.get("idempotent")
                    && consumer.position(second) == ends.get("acks-none");
            });
            consumer.commitSync();
            assertEquals(ends.get("idempotent"), consumer.committed(java.util.Set.of(first)).get(first).offset());
        }
        try (Admin bob = Admin.create(broker.clientSettings("bob", "cleaner"))) {
            TopicPartition partition = new TopicPartition("acks-one", 0);
            assertEquals(ends.get("acks-one"), bob.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(ends.get("acks-one"))))
                .lowWatermarks().get(partition).get().lowWatermark());
            bob.createTopics(List.of(new NewTopic("made-in-pause", 1, (short) 1))).all().get();
            bob.deleteTopics(List.of("made-in-pause")).all().get();
        }
    }

    private static boolean noneIsEnding(Admin admin) {
        try {
            return admin.listTransactions().all().get().stream().noneMatch(transaction -> transaction.state() == TransactionState.PREPARE_COMMIT);
        } catch (ExecutionException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Map<String, Long> endOffsets(Admin admin) {
        return PRODUCERS.keySet().stream().collect(Collectors.toMap(topic -> topic, topic -> endOffset(admin, topic)));
    }

    private static long endOffset(Admin admin, String topic) {
        TopicPartition partition = new TopicPartition(topic, 0);
        try {
            return admin.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get().offset();
        } catch (ExecutionException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void theClustersOwnAuthorizerAllowsAndDeniesAsBefore() throws Exception {
        try (LiveBroker broker = new LiveBroker(directory, FENCED); Admin admin = broker.admin()) {
            broker.decide("OPEN", 1);
            broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN && applied.lost() == null);
            admin.createTopics(List.of(new NewTopic("closed", 1, (short) 1))).all().get();
            AclBinding onlyAlice = new AclBinding(new ResourcePattern(ResourceType.TOPIC, "closed", PatternType.LITERAL),
                new AccessControlEntry("User:alice", "*", AclOperation.ALL, AclPermissionType.ALLOW));
            admin.createAcls(List.of(onlyAlice)).all().get();
            // A broker learns of them from the controller, a moment later.
            LiveBroker.await("the ACL is known", () -> acls(admin).equals(List.of(onlyAlice)));
            produce(broker, "alice");
            assertDenied(broker, "bob");
            if (LiveBroker.HAS_METRICS) {
                double[] acls = broker.jmx(connection -> connection.queryNames(
                        new javax.management.ObjectName("kafka.server:type=plugins,config=authorizer.class.name,*"), null).stream()
                    .mapToDouble(name -> {
                        try {
                            return ((Number) connection.getAttribute(name, "acls-total-count")).doubleValue();
                        } catch (Exception e) {
                            return -1;
                        }
                    }).toArray());
                assertTrue(java.util.Arrays.stream(acls).anyMatch(count -> count == 1), "its metrics are there too: " + java.util.Arrays.toString(acls));
            }

            broker.decide("PAUSE", 0);
            broker.awaitApplied("PAUSE by the fence", applied -> applied.mechanism() == Mechanism.FENCE);
            assertDenied(broker, "bob");
            admin.deleteAcls(List.of(onlyAlice.toFilter())).all().get();
            LiveBroker.await("the ACL is forgotten", () -> acls(admin).isEmpty());

            broker.decide("OPEN", 1);
            broker.awaitApplied("OPEN", applied -> applied.mechanism() == Mechanism.NONE);
            produce(broker, "bob");
        }
    }

    private static List<AclBinding> acls(Admin admin) {
        try {
            return List.copyOf(admin.describeAcls(AclBindingFilter.ANY).values().get());
        } catch (ExecutionException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void produce(LiveBroker broker, String user) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = broker.producer(user, "app")) {
            producer.send(new ProducerRecord<>("closed", new byte[100])).get();
        }
    }

    private static void assertDenied(LiveBroker broker, String user) {
        ExecutionException denied = assertThrows(ExecutionException.class, () -> produce(broker, user));
        assertTrue(denied.getCause() instanceof TopicAuthorizationException, denied.toString());
    }

    @Test
    @Tag("F24")
    void whereTheFenceFailsTheGovernorHolds() throws Exception {
        Map<String, String> settings = new TreeMap<>(FENCED);
        settings.put("authorizer.class.name", "org.kquota.FaultyAuthorizer");
        settings.put("kquota.fence.authorizer.class", "none");
        try (LiveBroker broker = new LiveBroker(directory, settings); Admin admin = broker.admin()) {
            ExecutionException none = assertThrows(ExecutionException.class, () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
            assertTrue(none.getCause() instanceof SecurityDisabledException, "nothing to wrap is as no authorizer: " + none);
            broker.decide("OPEN", 1);
            broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN && applied.lost() == null);
            try (Load poisoned = new Load(broker, "alice", "poison", "poisoned", 5 * MB)) {
                Thread.sleep(6000);
                broker.decide("PAUSE", 0);
                broker.awaitApplied("PAUSE by the governor", applied -> applied.mechanism() == Mechanism.GOVERNOR);
                Thread.sleep(12_000);
                long end = System.nanoTime();
                long late = poisoned.bytes(end - 5_000_000_000L, end);
                assertTrue(late <= 2 * Load.LARGEST_REQUEST_BYTES, late + " bytes leaked in the last 5 s, where delays are about as long");
                assertEquals(0, poisoned.failed(), "no request may fail");
                assertTrue(broker.applied().errors().stream().anyMatch(error -> error.kind().equals("fence") && error.count() > 0));
            }
        }
    }
}
