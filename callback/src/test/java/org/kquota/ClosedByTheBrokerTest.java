package org.kquota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.accounting.RefusalMetrics;
import org.kquota.config.KquotaConfig;
import org.kquota.decision.BootClock;
import org.kquota.node.BrokerNode;
import org.kquota.node.Nodes;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** Brokers close plug-ins through Kafka's own wrapper, which closes what is AutoCloseable. */
class ClosedByTheBrokerTest {
    private static final ClientQuotaType PRODUCE = ClientQuotaType.PRODUCE;
    private static final KafkaPrincipal ALICE = new KafkaPrincipal("User", "alice");

    private record ClientId(String name) implements ClientQuotaEntity.ConfigEntity {
        @Override
        public ClientQuotaEntity.ConfigEntityType entityType() {
            return ClientQuotaEntity.ConfigEntityType.CLIENT_ID;
        }
    }

    @TempDir
    private Path directory;
    private Map<String, Object> properties;

    @BeforeEach
    void open() throws Exception {
        new TestDecision(directory).write("OPEN", 1);
        properties = TestProperties.broker(directory);
        properties.put(KquotaConfig.MODE, "enforce");
    }

    /** The plug-in as a broker makes and closes it. */
    private final class Role implements AutoCloseable {
        private final Plugin<ClientQuotaCallback> plugin;

        Role(Metrics metrics, String name) {
            ClientQuotaCallback callback = new KquotaCallback();
            callback.configure(properties);
            plugin = Plugin.wrapInstance(callback, metrics, "client.quota.callback.class", "role", name);
        }

        void limitApp() {
            plugin.get().updateQuota(PRODUCE, () -> List.of(new ClientId("app")), 5e6);
        }

        Double limitOfApp() {
            return plugin.get().quotaLimit(PRODUCE, plugin.get().quotaMetricTags(PRODUCE, ALICE, "app"));
        }

        @Override
        public void close() {
            Utils.closeQuietly(plugin, "client quota callback plugin");
        }
    }

    private static List<String> threads() {
        return Thread.getAllStackTraces().keySet().stream().filter(Thread::isAlive).map(Thread::getName)
            .filter(name -> name.startsWith("kquota-")).sorted().toList();
    }

    @Test
    @Tag("C12")
    void nothingOfABrokerThatStoppedLivesOnInTheNextOne() throws Exception {
        try (Metrics metrics = new Metrics()) {
            int withoutUs = metrics.metrics().size();
            Role first = new Role(metrics, "broker");
            first.limitApp();
            assertEquals(5e6, first.limitOfApp());
            assertEquals(List.of("kquota-applied-1", "kquota-decision-1", "kquota-watch-1"), threads());
            assertNotEquals(withoutUs, metrics.metrics().size());
            first.close();
            assertEquals(List.of(), threads());
            assertEquals(withoutUs, metrics.metrics().size());
            try (Role second = new Role(metrics, "broker")) {
                assertNull(second.limitOfApp());
            }
        }
    }

    /** On a node with both roles, the broker closes its plug-in before the controller does. */
    @Test
    @Tag("C12")
    void theOtherRoleOfTheNodeGoesOnWithoutAFault() throws Exception {
        BrokerNode node = Nodes.acquire(new KquotaConfig(properties), new BootClock());
        try (Metrics metrics = new Metrics(); Role controller = new Role(metrics, "controller")) {
            Role broker = new Role(metrics, "broker");
            broker.close();
            node.fence().refused().count("User:alice", "app");
            node.refusalMetrics().update();
            assertEquals(0, node.errors().total());
            assertEquals(1, metrics.metrics().keySet().stream().filter(name -> name.name().equals(RefusalMetrics.OF_CLIENT)).count());
            assertEquals(List.of("kquota-applied-1", "kquota-decision-1", "kquota-watch-1"), threads());
            controller.limitApp();
            assertEquals(5e6, controller.limitOfApp());
        } finally {
            Nodes.release(node);
        }
        assertEquals(List.of(), threads());
    }

    @Test
    void closedTwiceItLeavesTheOtherRoleItsNode() throws Exception {
        try (Metrics metrics = new Metrics(); Role controller = new Role(metrics, "controller")) {
            KquotaCallback broker = new KquotaCallback();
            broker.configure(properties);
            broker.close();
            // Once more does not count.
            broker.close();
            assertTrue(threads().contains("kquota-decision-1"));
            assertNull(controller.limitOfApp());
        }
        assertEquals(List.of(), threads());
    }

    @Test
    void aReportThatIsBeingWrittenIsWrittenToItsEnd() throws Exception {
        try (LogLines log = new LogLines(KquotaCallback.class)) {
            for (int i = 0; i < 20; i++) {
                KquotaCallback callback = new KquotaCallback();
                callback.configure(properties);
                callback.close();
                assertEquals(List.of(), log.lines());
                assertFalse(Files.exists(directory.resolve("applied/.applied.json.tmp")));
            }
        }
    }
}
