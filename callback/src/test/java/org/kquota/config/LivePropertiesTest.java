package org.kquota.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.apache.logging.log4j.Level;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.kquota.KquotaCallback;
import org.kquota.LogLines;
import org.kquota.TestDecision;
import org.kquota.TestProperties;
import org.kquota.decision.BootClock;
import org.kquota.decision.Mode;
import org.kquota.decision.State;
import org.kquota.error.Errors;
import org.kquota.group.Group;
import org.kquota.node.BrokerNode;
import org.kquota.node.Nodes;
import org.kquota.quota.Tags;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

/** Broker properties change while the broker runs, as Kafka has the plug-in change them: it first asks, then applies. */
class LivePropertiesTest {
    private static final ClientQuotaType PRODUCE = ClientQuotaType.PRODUCE;
    private static final KafkaPrincipal ALICE = new KafkaPrincipal("User", "alice");
    private static final String TEAM = "kquota.quota.group.team.";

    @TempDir
    private Path directory;
    private final KquotaCallback callback = new KquotaCallback();
    /** As in server.properties. */
    private Map<String, Object> file;
    /** The properties stored for the running broker, over that. */
    private final Map<String, Object> stored = new HashMap<>();
    private BrokerNode node;

    @BeforeEach
    void theBrokerRuns() throws Exception {
        new TestDecision(directory).write("OPEN", 1);
        file = TestProperties.broker(directory);
        file.put("kquota.mode", "enforce");
        file.put("kquota.quota.produce.default", "2M");
        file.put("kquota.quota.groups", "team");
        file.put(TEAM + "principals", "User:bob");
        file.put(TEAM + "produce.total", "8M");
        file.put(TEAM + "topics", "orders");
        callback.configure(file);
        node = Nodes.acquire(new KquotaConfig(file), new BootClock());
    }

    @AfterEach
    void end() {
        Nodes.release(node);
        callback.close();
    }

    /** Each key with its new value, or null to have that of the file again. */
    private Map<String, Object> with(String... changes) {
        Map<String, Object> changed = new HashMap<>(stored);
        for (int i = 0; i < changes.length; i += 2) {
            if (changes[i + 1] == null) {
                changed.remove(changes[i]);
            } else {
                changed.put(changes[i], changes[i + 1]);
            }
        }
        return changed;
    }

    private Map<String, Object> all(Map<String, Object> dynamic) {
        Map<String, Object> all = new HashMap<>(file);
        all.putAll(dynamic);
        return all;
    }

    private String refusal(String... changes) {
        return assertThrows(ConfigException.class, () -> callback.validateReconfiguration(all(with(changes)))).getMessage();
    }

    /** As with kafka-configs. */
    private void alter(String... changes) throws Exception {
        Map<String, Object> changed = with(changes);
        callback.validateReconfiguration(all(changed));
        store(changed);
    }

    /** As Kafka applies stored properties, whichever broker was asked. */
    private void store(Map<String, Object> changed) throws InterruptedException {
        stored.clear();
        stored.putAll(changed);
        Throwable[] thrown = new Throwable[1];
        Thread thread = new Thread(() -> {
            try {
                callback.validateReconfiguration(all(changed));
                callback.reconfigure(all(changed));
            } catch (Throwable e) {
                thrown[0] = e;
            }
        }, "kafka-1-metadata-loader-event-handler");
        thread.start();
        thread.join();
        assertNull(thrown[0], "Kafka would take over nothing at all");
    }

    private Map<String, String> tags(String user, String clientId) {
        return callback.quotaMetricTags(PRODUCE, new KafkaPrincipal("User", user), clientId);
    }

    private Double limit(String user, String clientId) {
        return callback.quotaLimit(PRODUCE, tags(user, clientId));
    }

    private Group team() {
        return node.quotas().groups().all().iterator().next();
    }

    private long left() {
        return node.errors().tally(Errors.Kind.PROPERTIES).count();
    }

    /** This broker leads one of the two partitions of orders. */
    private void half() {
        Node here = new Node(1, "h", 1);
        Node there = new Node(2, "h", 2);
        Node[] none = new Node[0];
        callback.updateClusterMetadata(new Cluster("c", List.of(here, there), List.of(
            new PartitionInfo("orders", 0, here, none, none), new PartitionInfo("orders", 1, there, none, none)), Set.of(), Set.of()));
    }

    @Test
    @Tag("G21")
    void staticQuotasChangeAndComeBackAsTheFileHasThem() throws Exception {
        assertEquals(2e6, limit("alice", "app"));
        while (callback.quotaResetRequired(PRODUCE)) {
            Thread.onSpinWait();
        }
        alter("kquota.quota.produce.default", "3M", "kquota.quota.produce.overrides", "fast:9M", "kquota.quota.fetch.default", "4M");
        assertTrue(callback.quotaResetRequired(PRODUCE), "the broker has to look at the limits that it knows");
        assertEquals(3e6, limit("alice", "app"));
        assertEquals(9e6, limit("alice", "fast"));
        assertEquals(4e6, callback.quotaLimit(ClientQuotaType.FETCH, callback.quotaMetricTags(ClientQuotaType.FETCH, ALICE, "app")));
        alter("kquota.quota.produce.default", null, "kquota.quota.produce.overrides", null);
        assertEquals(2e6, limit("alice", "app"));
        assertEquals(2e6, limit("alice", "fast"));
        alter("kquota.quota.produce.default", "");
        assertNull(limit("alice", "app"));
    }

    @Test
    @Tag("G21")
    void groupsChangeAndKeepTheirShareTheirCountAndTheirTags() throws Exception {
        half();
        team().refused();
        assertEquals(4e6, limit("bob", "any"));
        alter(TEAM + "produce.total", "10M", TEAM + "principals", "User:bob;User:alice");
        assertEquals(5e6, limit("bob", "any"), "the share of the partitions led here is known");
        assertEquals(5e6, limit("alice", "any"));
        assertEquals(1, team().refusals());
        alter("kquota.quota.groups", "team,night", "kquota.quota.group.night.client.ids", "night-*", "kquota.quota.group.night.produce", "1M");
        assertEquals(1e6, limit("carol", "night-1"));
        assertTrue(callback.reconfigurableConfigs().contains("kquota.quota.group.night.fetch"));
        alter("kquota.quota.group.night.produce", "2M");
        assertEquals(2e6, limit("carol", "night-1"));
        alter("kquota.quota.groups", "night");
        assertEquals(2e6, limit("bob", "any"), "in no group any more; the file still has its properties");
        alter("kquota.quota.groups", null, "kquota.quota.group.night.client.ids", null, "kquota.quota.group.night.produce", null);
        assertEquals(5e6, limit("alice", "night-1"));
        assertEquals(0, team().refusals(), "a group that was away begins at zero");
    }

    @Test
    @Tag("G21")
    void whoIsExemptChangesAndIsReportedSo() throws Exception {
        assertNull(limit("admin", "a"));
        alter(KquotaConfig.EXEMPT_PRINCIPALS, "User:CN=agent,O=x;User:alice");
        assertNull(limit("alice", "a"));
        assertEquals(2e6, limit("admin", "a"), "it is exempt no more");
        assertEquals(List.of("User:alice"), node.quotas().exemptSeen().stream().map(seen -> seen.principal()).toList());
        assertTrue(node.quotas().isExempt(ALICE));
        alter(KquotaConfig.EXEMPT_PRINCIPALS, null);
        assertEquals(2e6, limit("alice", "a"));
        assertNull(limit("admin", "a"));
    }

    @Test
    @Tag("G21")
    void theQuotaOfAgentsChanges() throws Exception {
        assertNull(limit("admin", "a"));
        alter(KquotaConfig.AGENT_PRINCIPALS, "User:admin;User:alice");
        assertEquals(0x1p20, limit("admin", "a"));
        assertEquals(2e6, limit("alice", "a"), "it is not exempt");
        alter(KquotaConfig.AGENT_PRODUCE_QUOTA, "3M", KquotaConfig.EXEMPT_PRINCIPALS, "User:admin;User:alice;User:carol");
        assertEquals(List.of(3e6, 3e6), List.of(limit("admin", "a"), limit("alice", "b")));
        assertNull(limit("carol", "a"));
        assertTrue(node.quotas().isExempt(ALICE));
        alter(KquotaConfig.AGENT_PRINCIPALS, null);
        assertNull(limit("admin", "a"));
    }

    @Test
    @Tag("G21")
    void aPatternExemptsWhoComesLaterAndIsLogged() throws Exception {
        assertEquals(2e6, limit("CN=agent-7,O=x", "a"));
        try (LogLines log = new LogLines(KquotaCallback.class, Level.INFO)) {
            alter(KquotaConfig.EXEMPT_PRINCIPALS, "User:CN=agent-*,O=x;User:admin", "kquota.quota.produce.default", "3M");
            assertTrue(log.lines().contains("exempt are now User:CN=agent-*,O=x;User:admin"), log.lines().toString());
            alter("kquota.quota.produce.default", null);
            assertEquals(1, log.lines().stream().filter(line -> line.startsWith("exempt are")).count(), "no other change");
        }
        assertNull(limit("CN=agent-7,O=x", "a"));
        assertNull(limit("CN=agent-8,O=x", "a"));
        assertEquals(2e6, limit("CN=agent-8,O=x,O=y", "a"));
        assertEquals(List.of("User:CN=agent-7,O=x", "User:CN=agent-8,O=x"), node.quotas().exemptSeen().stream().map(seen -> seen.principal()).toList());
        alter(KquotaConfig.EXEMPT_PRINCIPALS, null);
        assertEquals(2e6, limit("CN=agent-8,O=x", "a"));
    }

    @Test
    @Tag("G21")
    void theActionOfALostDecisionChanges() throws Exception {
        java.nio.file.Files.delete(directory.resolve("decision/decision.json"));
        TestDecision.await("lost", () -> node.now().lost() != null && node.now().state() == State.PAUSE);
        alter(KquotaConfig.DECISION_LOST_ACTION, "open");
        TestDecision.await("open", () -> node.now().state() == State.OPEN);
    }

    @ParameterizedTest
    @CsvSource({
        "kquota.quota.produce.default,1MB,from 1K",
        "kquota.exempt.principals,'',Type:name",
        "kquota.exempt.principals,User:CN=*,'User:CN=agent-*,O=x'",
        "kquota.exempt.principals,User:bob,kquota.exempt.principals",
        "kquota.quota.group.team.produce,1M,either this or",
        "kquota.quota.groups,night,kquota.quota.group.night",
        "kquota.produce.arrival.min.bytes,1,1024",
        "kquota.produce.mute.max.ms,ten,kquota.produce.mute.max.ms",
        "kquota.mode,off,observe",
        "kquota.decision.file,/run/other/decision.json,restart",
        "kquota.applied.file,/run/other/applied.json,restart",
        "kquota.topics.file,/etc/other.json,restart",
        "kquota.tag.sets.max,3000,restart",
        "kquota.fence.authorizer.class,org.example.Other,restart",
    })
    @Tag("G21")
    void whatCannotBeInForceIsRefusedAndWhatWasStaysSo(String key, String value, String allowed) {
        String message = refusal(key, value, "kquota.quota.produce.overrides", "fast:9M");
        assertTrue(message.contains(key.substring(0, key.lastIndexOf('.'))) && message.contains(value) && message.contains(allowed), message);
        assertEquals(2e6, limit("alice", "fast"), "nothing is half in force");
        assertTrue(callback.reconfigurableConfigs().contains(key), "Kafka would not ask");
    }

    @ParameterizedTest
    @ValueSource(strings = {"kquota.quota.produce.defualt", "kquota.quota.producer.default", "kquota.produce.default", "kquota.quota.Produce.default",
        "kquota.exempt.principal", "kquota.produce.mute.max.mz", "kquota.quota.group.team.principal", "kquota.quota.group.team.fetch.totl"})
    @Tag("G21")
    void aMisspeltOneIsRefused(String key) {
        assertTrue(callback.reconfigurableConfigs().contains(key), "Kafka would not ask");
        String message = refusal(key, "1M");
        assertTrue(message.contains(key) && message.contains("there is no such property; allowed are ") && message.contains("kquota.quota.produce.default"),
            message);
    }

    @Test
    @Tag("G21")
    void whatWasStoredUnaskedIsLeftOutAndKeepsNothingElseFromChanging() throws Exception {
        store(with("kquota.quota.produce.default", "1MB", "kquota.exempt.principals", "", "kquota.mode", "observe"));
        assertEquals(2e6, limit("alice", "app"));
        assertEquals(Mode.OBSERVE, node.brokerMode());
        assertEquals(1, left());
        alter("kquota.quota.produce.default", "3M", "kquota.exempt.principals", null);
        assertEquals(3e6, limit("alice", "app"));

        store(with("kquota.foo", "1", "kquota.topics.file", "/etc/other.json", "kquota.quota.produce.default", "4M", "kquota.mode", "on"));
        assertEquals(4e6, limit("alice", "app"), "allowed ones are in force");
        assertEquals(Mode.OBSERVE, node.brokerMode());
        assertEquals(4, left(), "a mode, too");
        assertEquals(directory.resolve("decision/decision.json"), node.config().decisionFile());
    }

    @Test
    @Tag("C12")
    @Tag("G21")
    void theGlassBreaksWhateverElseIsStored() throws Exception {
        store(with("kquota.quota.produce.default", "1MB", "kquota.foo", "1"));
        assertTrue(refusal("kquota.quota.fetch.default", "1M").contains("kquota.foo"));
        alter("kquota.mode", "observe");
        assertEquals(Mode.OBSERVE, node.brokerMode());
        alter("kquota.mode", null);
        assertEquals(Mode.ENFORCE, node.brokerMode());
    }

    @Test
    void theSecondInstanceOfANodeChangesNothingAgain() throws Exception {
        alter("kquota.quota.produce.default", "3M");
        Group before = team();
        store(with());
        assertEquals(before, team());
    }

    /** A client that is exempt in one of them is in a group in the other; half of each would be neither, or the group of before. */
    @Test
    @Tag("G21")
    void aRequestGoesByWhatWasOrByWhatIs() throws Exception {
        Map<String, Object> grouped = all(with(TEAM + "principals", "User:alice"));
        Map<String, Object> exempt = all(with(KquotaConfig.EXEMPT_PRINCIPALS, "User:alice", "kquota.quota.groups", "", "kquota.quota.produce.default", ""));
        Map<String, String> asGrouped = Tags.of("<group>team", "");
        Map<String, String> asExempt = Tags.exempt("alice");
        callback.reconfigure(grouped);
        Set<Map<String, String>> seen = ConcurrentHashMap.newKeySet();
        AtomicBoolean ended = new AtomicBoolean();
        Thread requests = new Thread(() -> {
            while (!ended.get()) {
                seen.add(tags("alice", "app"));
            }
        });
        requests.start();
        try {
            for (int i = 0; i < 500; i++) {
                callback.reconfigure(exempt);
                assertEquals(asExempt, tags("alice", "app"));
                callback.reconfigure(grouped);
                assertEquals(asGrouped, tags("alice", "app"));
            }
        } finally {
            ended.set(true);
            requests.join();
        }
        assertEquals(Set.of(asGrouped, asExempt), seen);
    }

    @Test
    @Tag("G21")
    void onAControllerQuotasChangeToo() throws Exception {
        Map<String, Object> properties = new HashMap<>(file);
        properties.put("node.id", "9");
        properties.put("process.roles", "controller");
        KquotaCallback controller = new KquotaCallback();
        controller.configure(properties);
        try {
            properties.put("kquota.quota.groups", "team,callers");
            properties.put("kquota.quota.group.callers.principals", "User:alice");
            properties.put("kquota.quota.group.callers.request", "5");
            controller.validateReconfiguration(properties);
            controller.reconfigure(properties);
            ClientQuotaType request = ClientQuotaType.REQUEST;
            assertEquals(5.0, controller.quotaLimit(request, controller.quotaMetricTags(request, ALICE, "x")));
            assertTrue(controller.quotaResetRequired(request));
        } finally {
            controller.close();
        }
    }
}
