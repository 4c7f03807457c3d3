package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.applied.AppliedState;
import org.kquota.decision.Mode;
import org.kquota.decision.State;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;

/** Broker properties change on a real broker, as kafka-configs changes them. */
class LiveReconfigurationTest {
    private static final String ALL_BROKERS = "";
    private static final String THIS_BROKER = "1";
    private static final String DEFAULT = "kquota.quota.produce.default";
    private static final String OVERRIDES = "kquota.quota.produce.overrides";
    private static final String GROUPS = "kquota.quota.groups";
    private static final String NIGHT = "kquota.quota.group.night.";
    private static final String EXEMPT = "kquota.exempt.principals";
    private static final String LONGEST_MUTE = "kquota.produce.mute.max.ms";
    private static final String MODE = "kquota.mode";
    /** One request of this size is far over a quota of 100K, and far below one of 100M. */
    private static final int REQUEST_BYTES = 900_000;

    @TempDir
    private static Path directory;
    private static LiveBroker broker;
    private static int clients;
    /** The properties set for all brokers and for this one, to be removed again. */
    private final Map<String, List<String>> set = new TreeMap<>();

    @BeforeAll
    static void start() throws Exception {
        broker = new LiveBroker(directory, new HashMap<>(Map.of(DEFAULT, "100M", GROUPS, "team",
            "kquota.quota.group.team.client.ids", "shared-*", "kquota.quota.group.team.produce", "100K")));
    }

    @AfterAll
    static void stop() {
        if (broker != null) {
            broker.close();
        }
    }

    @BeforeEach
    void open() throws Exception {
        broker.decide("OPEN", 1, "enforce", 3_600_000);
        broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN && applied.lost() == null);
    }

    @AfterEach
    void asTheFileHasIt() throws Exception {
        try (Admin admin = broker.admin()) {
            for (Map.Entry<String, List<String>> entry : set.entrySet()) {
                alter(admin, entry.getKey(), new ArrayList<>(entry.getValue()).stream().flatMap(key -> java.util.stream.Stream.of(key, null))
                    .toArray(String[]::new));
            }
        }
    }

    /** Each key with its new value, or null to delete it, in one request. */
    private void alter(String which, String... changes) throws Exception {
        try (Admin admin = broker.admin()) {
            alter(admin, which, changes);
        }
        for (int i = 0; i < changes.length; i += 2) {
            set.computeIfAbsent(which, key -> new ArrayList<>()).add(changes[i]);
        }
    }

    private static void alter(Admin admin, String which, String... changes) throws Exception {
        Map<String, AlterConfigOp> operations = new HashMap<>();
        for (int i = 0; i < changes.length; i += 2) {
            operations.put(changes[i], new AlterConfigOp(new ConfigEntry(changes[i], changes[i + 1]),
                changes[i + 1] == null ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET));
        }
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.BROKER, which), operations.values())).all().get();
    }

    private static String refusal(String which, String... changes) {
        try (Admin admin = broker.admin()) {
            return assertThrows(ExecutionException.class, () -> alter(admin, which, changes)).getMessage();
        }
    }

    private static boolean isStored(String key) throws Exception {
        try (Admin admin = broker.admin()) {
            for (String which : List.of(ALL_BROKERS, THIS_BROKER)) {
                ConfigResource resource = new ConfigResource(ConfigResource.Type.BROKER, which);
                ConfigEntry entry = admin.describeConfigs(List.of(resource)).all().get().get(resource).get(key);
                if (entry != null && entry.source() != ConfigEntry.ConfigSource.STATIC_BROKER_CONFIG) {
                    return true;
                }
            }
            return false;
        }
    }

    /** For how long one request of a client with this name, and a number that no other has, is delayed. */
    private static double delay(String user, String clientId) {
        return delayOf(user, clientId + "-" + ++clients);
    }

    private static double delayOf(String user, String clientId) {
        try (KafkaProducer<byte[], byte[]> producer = broker.producer(user, clientId)) {
            producer.send(new ProducerRecord<>("reconfigured", new byte[REQUEST_BYTES])).get();
            return producer.metrics().values().stream().filter(metric -> metric.metricName().name().equals("produce-throttle-time-max"))
                .mapToDouble(metric -> (double) metric.metricValue()).max().orElseThrow();
        } catch (InterruptedException | ExecutionException e) {
            throw new AssertionError(e);
        }
    }

    private static void awaitHeld(String user, String clientId) throws Exception {
        LiveBroker.await(user + " with " + clientId + " is held", () -> delay(user, clientId) > 0);
    }

    private static void awaitFree(String user, String clientId) throws Exception {
        LiveBroker.await(user + " with " + clientId + " is free", () -> delay(user, clientId) == 0);
    }

    private static long left() throws Exception {
        return broker.applied().errors().stream().filter(error -> error.kind().equals("properties")).mapToLong(AppliedState.Error::count).sum();
    }

    @Test
    @Tag("G21")
    void aStaticQuotaChangesForAllBrokersAndForOneAndIsThatOfTheFileAgain() throws Exception {
        awaitFree("carol", "some");
        alter(ALL_BROKERS, DEFAULT, "100K");
        awaitHeld("carol", "some");
        alter(THIS_BROKER, DEFAULT, "90M");
        awaitFree("carol", "some");
        alter(THIS_BROKER, DEFAULT, null);
        awaitHeld("carol", "some");
        alter(ALL_BROKERS, OVERRIDES, "fast:90M");
        LiveBroker.await("the override", () -> delayOf("carol", "fast") == 0);
        awaitHeld("carol", "some");
        alter(ALL_BROKERS, DEFAULT, null, OVERRIDES, null);
        awaitFree("carol", "some");
    }

    @Test
    @Tag("G21")
    void aGroupComesChangesAndGoes() throws Exception {
        awaitHeld("carol", "shared");
        awaitFree("carol", "night");
        alter(ALL_BROKERS, GROUPS, "team,night", NIGHT + "client.ids", "night-*", NIGHT + "produce", "100K");
        awaitHeld("carol", "night");
        assertEquals(List.of("team", "night"), broker.awaitApplied("both groups", applied -> applied.clients().groups().size() == 2)
            .clients().groups().stream().map(group -> group.name()).toList());
        alter(ALL_BROKERS, NIGHT + "produce", "80M");
        // The bytes that its members produced while it was held count for them all.
        awaitFree("carol", "night");
        alter(ALL_BROKERS, NIGHT + "principals", "User:dave", NIGHT + "produce", "100K");
        awaitHeld("dave", "whatever");
        alter(ALL_BROKERS, GROUPS, null, NIGHT + "client.ids", null, NIGHT + "principals", null, NIGHT + "produce", null);
        awaitFree("dave", "whatever");
        awaitFree("carol", "night");
    }

    @Test
    @Tag("G21")
    void whoIsExemptChanges() throws Exception {
        awaitHeld("alice", "shared");
        alter(THIS_BROKER, EXEMPT, "User:" + LiveBroker.AGENT + ";User:alice");
        awaitFree("alice", "shared");
        broker.awaitApplied("alice is exempt", applied -> applied.exempt().stream().anyMatch(seen -> seen.principal().equals("User:alice")));
        alter(THIS_BROKER, EXEMPT, null);
        awaitHeld("alice", "shared");
        broker.awaitApplied("alice is not", applied -> applied.exempt().stream().noneMatch(seen -> seen.principal().equals("User:alice")));
    }

    @Test
    @Tag("G21")
    void aPatternExemptsTheNamesOfOneOrganization() throws Exception {
        alter(THIS_BROKER, EXEMPT, "User:" + LiveBroker.AGENT + ";User:CN=kquota-agent-*,O=kquota");
        awaitFree(LiveBroker.OF_A_CERTIFICATE, "shared");
        broker.awaitApplied("the agent is seen as exempt",
            applied -> applied.exempt().stream().anyMatch(seen -> seen.principal().equals("User:" + LiveBroker.OF_A_CERTIFICATE)));
        awaitHeld(LiveBroker.OF_ANOTHER_CERTIFICATE, "shared");
        assertTrue(broker.log().contains("exempt are now User:CN=kquota-agent-*,O=kquota;User:admin"), broker.log());
    }

    @Test
    @Tag("G21")
    void theGovernorGoesByOtherSettingsInAPause() throws Exception {
        broker.decide("PAUSE", 0, "enforce", 3_600_000);
        broker.awaitApplied("a mute as the file allows it", applied -> mute(applied) > 2);
        alter(ALL_BROKERS, LONGEST_MUTE, "1500");
        broker.awaitApplied("a shorter one", applied -> mute(applied) > 0 && mute(applied) <= 1.5);
        alter(ALL_BROKERS, LONGEST_MUTE, null);
        broker.awaitApplied("a mute as the file allows it", applied -> mute(applied) > 2);
    }

    private static double mute(AppliedState applied) {
        Double seconds = applied.governor().poolMuteSeconds();
        return seconds == null ? 0 : seconds;
    }

    @Test
    @Tag("G21")
    void whatIsWrongIsRefusedWithASentenceAndNothingOfItIsInForceOrStored() throws Exception {
        String[][] wrong = {
            {DEFAULT, "1MB", "allowed are bytes per second"},
            {EXEMPT, "", "the agent would be held by its own pause"},
            {EXEMPT, "User:*", "User:CN=agent-*,O=x"},
            {"kquota.quota.produce.defualt", "100K", "there is no such property"},
            {"kquota.exempt.principal", "User:alice", "there is no such property"},
            {"kquota.quota.group.team.principal", "User:alice", "there is no such property"},
            {"kquota.quota.group.team.produce", "fast", "allowed are bytes per second"},
            {GROUPS, "night", "the group has no limit"},
            {LONGEST_MUTE, "5", "at least 100"},
            {"kquota.decision.file", "/run/other/decision.json", "restart the broker"},
            {"kquota.tag.sets.max", "3000", "restart the broker"},
        };
        for (String which : List.of(ALL_BROKERS, THIS_BROKER)) {
            for (String[] each : wrong) {
                String message = refusal(which, each[0], each[1], OVERRIDES, "slow:100K");
                assertTrue(message.contains(each[2]), message);
                message = refusal(which, each[0], each[1]);
                assertTrue(message.contains(each[0].substring(0, each[0].lastIndexOf('.'))) && message.contains(each[1]) && message.contains(each[2]), message);
                assertEquals(false, isStored(each[0]) || isStored(OVERRIDES), each[0]);
            }
        }
        assertEquals(0, delayOf("carol", "slow"));
        awaitHeld("carol", "shared");
        assertEquals(0, left());
    }

    @Test
    @Tag("G21")
    void afterARestartWhatIsStoredHoldsAndWhatCannotIsLeftOut() throws Exception {
        alter(ALL_BROKERS, DEFAULT, "100K", MODE, "observe");
        awaitHeld("carol", "some");
        broker.restart();
        broker.decide("OPEN", 1, "enforce", 3_600_000);
        awaitHeld("carol", "some");
        assertEquals(Mode.OBSERVE, broker.awaitApplied("a report", applied -> applied.lost() == null).brokerMode());

        // The controller asks no plug-in.
        long before = left();
        try (Admin controller = Admin.create(Map.of("bootstrap.controllers", controller()))) {
            alter(controller, ALL_BROKERS, DEFAULT, "1MB");
        }
        broker.awaitApplied("an error", applied -> applied.errors().stream().anyMatch(error -> error.kind().equals("properties")
            && error.count() > before && error.lastMessage().contains("1MB")));
        awaitHeld("carol", "some");
        alter(ALL_BROKERS, MODE, "enforce");
        broker.awaitApplied("the mode", applied -> applied.brokerMode() == Mode.ENFORCE);
        alter(ALL_BROKERS, MODE, "observe");
        broker.restart();
        broker.decide("OPEN", 1, "enforce", 3_600_000);
        assertEquals(Mode.OBSERVE, broker.awaitApplied("a report", applied -> applied.lost() == null && applied.brokerMode() == Mode.OBSERVE).brokerMode());
        awaitFree("carol", "some");
        assertTrue(left() > 0);
        assertTrue(broker.log().contains("a broker property that is stored is not in force"));
        alter(ALL_BROKERS, DEFAULT, "100K");
        awaitHeld("carol", "some");
    }

    private static String controller() throws Exception {
        Properties properties = new Properties();
        try (var in = Files.newInputStream(directory.resolve("server.properties"))) {
            properties.load(in);
        }
        return properties.getProperty("controller.quorum.voters").replaceFirst("1@", "");
    }
}
