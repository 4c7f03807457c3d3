package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.ForeignAuthorizer;
import org.kquota.applied.AppliedState.Mechanism;
import org.kquota.decision.State;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;

/** The authorizer that the fence wraps goes on as if it were not wrapped, on real brokers: across a restart, reconfigured, and of any make. */
class LiveAuthorizerTest {
    private static final String TOPIC = "closed";

    @TempDir
    private Path directory;

    @Test
    @Tag("C12")
    void aclsAreThereAgainAfterARestartOfTheBroker() throws Exception {
        try (LiveBroker broker = new LiveBroker(directory, LiveFenceTest.FENCED)) {
            decideOpen(broker);
            AclBinding onlyAlice = new AclBinding(new ResourcePattern(ResourceType.TOPIC, TOPIC, PatternType.LITERAL),
                new AccessControlEntry("User:alice", "*", AclOperation.ALL, AclPermissionType.ALLOW));
            try (Admin admin = broker.admin()) {
                admin.createTopics(List.of(new NewTopic(TOPIC, 1, (short) 1))).all().get();
                admin.createAcls(List.of(onlyAlice)).all().get();
            }
            broker.restart();
            broker.awaitApplied("OPEN again", applied -> applied.pid() == broker.process().pid() && applied.state() == State.OPEN);
            try (Admin admin = broker.admin()) {
                assertEquals(List.of(onlyAlice), List.copyOf(admin.describeAcls(AclBindingFilter.ANY).values().get()));
            }
            produce(broker, "alice");
            assertDenied(broker, "bob");
        }
    }

    @Test
    @Tag("C12")
    @Tag("F28")
    void anAuthorizerOfAnotherMakeDecidesIsReconfiguredAndIsFenced() throws Exception {
        Map<String, String> settings = Map.of("authorizer.class.name", LiveBroker.AUTHORIZER,
            "kquota.fence.authorizer.class", ForeignAuthorizer.class.getName(), ForeignAuthorizer.DENIED, "carol");
        try (LiveBroker broker = new LiveBroker(directory, settings); Admin admin = broker.admin()) {
            decideOpen(broker);
            admin.createTopics(List.of(new NewTopic(TOPIC, 1, (short) 1))).all().get();
            assertDenied(broker, "carol");
            produce(broker, "bob");
            assertThrows(ExecutionException.class, () -> deny(admin, "nobody"), "it is asked whether a change is allowed");
            deny(admin, "bob");
            LiveBroker.await("bob is denied", () -> isDenied(broker, "bob"));
            produce(broker, "carol");

            broker.decide("PAUSE", 0);
            broker.awaitApplied("PAUSE by the fence", applied -> applied.mechanism() == Mechanism.FENCE);
            long end = endOffset(admin);
            assertDenied(broker, "bob");
            try (Reconnecting reconnecting = new Reconnecting(broker, "carol", TOPIC)) {
                LiveBroker.await("a producer that reconnects over and over", () -> reconnecting.connections() >= 5);
                assertEquals(end, endOffset(admin), "not a byte of it may land");
                broker.decide("OPEN", 1);
                LiveBroker.await("it is back", () -> reconnecting.landed() > 0);
            }
        }
    }

    private static void decideOpen(LiveBroker broker) throws Exception {
        broker.decide("OPEN", 1, "enforce", 600_000);
        broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN && applied.lost() == null);
    }

    private static void deny(Admin admin, String user) throws Exception {
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.BROKER, "1"),
            List.of(new AlterConfigOp(new ConfigEntry(ForeignAuthorizer.DENIED, user), AlterConfigOp.OpType.SET)))).all().get();
    }

    private static long endOffset(Admin admin) throws Exception {
        TopicPartition partition = new TopicPartition(TOPIC, 0);
        return admin.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get().offset();
    }

    private static void produce(LiveBroker broker, String user) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = broker.producer(user, "app")) {
            producer.send(new ProducerRecord<>(TOPIC, new byte[100])).get();
        }
    }

    private static void assertDenied(LiveBroker broker, String user) {
        assertTrue(isDenied(broker, user), user + " must be denied");
    }

    private static boolean isDenied(LiveBroker broker, String user) {
        try {
            produce(broker, user);
            return false;
        } catch (ExecutionException e) {
            return e.getCause() instanceof TopicAuthorizationException;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
