package org.kquota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.kquota.TestDecision.await;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.kquota.config.KquotaConfig;
import org.kquota.decision.BootClock;
import org.kquota.error.Errors;
import org.kquota.node.BrokerNode;
import org.kquota.node.Nodes;
import org.kquota.quota.Tags;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

class KquotaCallbackTest {
    private static final ClientQuotaType PRODUCE = ClientQuotaType.PRODUCE;
    private static final KafkaPrincipal ALICE = new KafkaPrincipal("User", "alice");
    private static final KafkaPrincipal ADMIN = new KafkaPrincipal("User", "admin");

    @TempDir
    private Path directory;
    private TestDecision decision;
    private Map<String, Object> properties;
    private final List<CallbackWithoutMetrics> open = new ArrayList<>();

    @BeforeEach
    void enforcing() throws Exception {
        decision = new TestDecision(directory);
        properties = TestProperties.broker(directory);
        properties.put(KquotaConfig.MODE, "enforce");
    }

    @AfterEach
    void close() {
        open.forEach(CallbackWithoutMetrics::close);
    }

    private <T extends CallbackWithoutMetrics> T start(T callback) {
        callback.configure(properties);
        open.add(callback);
        return callback;
    }

    private KquotaCallback start() {
        return start(new KquotaCallback());
    }

    private static boolean holds(KquotaCallback callback) {
        return callback.quotaMetricTags(PRODUCE, ALICE, "app").equals(Tags.PAUSED);
    }

    @Test
    @Tag("F25")
    void withoutADecisionAtTheStartTheFallbackHoldsAtOnce() {
        assertTrue(holds(start()));
    }

    @Test
    @Tag("F25")
    void theFallbackCanBeToOpen() {
        properties.put(KquotaConfig.DECISION_LOST_ACTION, "open");
        assertFalse(holds(start()));
    }

    @ParameterizedTest
    @CsvSource({"observe,observe,false", "observe,enforce,false", "enforce,observe,false", "enforce,enforce,true"})
    void producersAreHeldOnlyIfFileAndBrokerSayEnforce(String brokerMode, String fileMode, boolean held) throws Exception {
        properties.put(KquotaConfig.MODE, brokerMode);
        decision.write("PAUSE", 0, fileMode, 60_000);
        assertEquals(held, holds(start()));
    }

    @Test
    void theLastModeReadCountsWhileTheDecisionIsLost() throws Exception {
        decision.write("OPEN", 1, "observe", 60_000);
        KquotaCallback callback = start();
        Files.delete(decision.file());
        await("lost", () -> callback.quotaResetRequired(PRODUCE) || lostIsReported());
        assertFalse(holds(callback));
    }

    private boolean lostIsReported() {
        try {
            return Files.readString(directory.resolve("applied/applied.json")).contains("is missing");
        } catch (java.io.IOException e) {
            return false;
        }
    }

    @Test
    @Tag("C12")
    void aNewDecisionIsInForceWithinMoments() throws Exception {
        decision.write("OPEN", 1);
        KquotaCallback callback = start();
        assertFalse(holds(callback));
        decision.write("PAUSE", 0);
        await("PAUSE", () -> holds(callback));
        decision.write("OPEN", 1);
        await("OPEN", () -> !holds(callback));
    }

    @Test
    @Tag("F3")
    void theLeaseEndsOnRequestThreadsEvenIfTheReaderIsDead() throws Exception {
        decision.write("OPEN", 1, "enforce", 3_000);
        KquotaCallback callback = start();
        assertFalse(holds(callback));
        Thread reader = threads("kquota-decision-1").get(0);
        open.remove(callback);
        callback.close();
        reader.join(60_000);
        assertFalse(reader.isAlive());
        while (callback.quotaResetRequired(PRODUCE)) {
            Thread.onSpinWait();
        }
        await("PAUSE without any thread", () -> holds(callback));
        assertTrue(callback.quotaResetRequired(PRODUCE), "the broker must look at the limits again");
        assertFalse(callback.quotaResetRequired(PRODUCE));
        Double limit = callback.quotaLimit(PRODUCE, Tags.PAUSED);
        assertTrue(limit > 10_000 && limit < 1e6, "limit of the pool: " + limit);
    }

    @Test
    @Tag("C8")
    void theResetFlagIsTrueOncePerInstanceAndTypeAfterAnOutsideChange() throws Exception {
        decision.write("OPEN", 1);
        KquotaCallback one = start();
        KquotaCallback two = start();
        for (KquotaCallback callback : List.of(one, two)) {
            await("quiet", () -> !callback.quotaResetRequired(PRODUCE));
        }
        decision.write("PAUSE", 0);
        await("PAUSE", () -> holds(one));
        for (KquotaCallback callback : List.of(one, two)) {
            await("reset", () -> callback.quotaResetRequired(PRODUCE));
            assertFalse(callback.quotaResetRequired(ClientQuotaType.FETCH));
            assertFalse(callback.quotaResetRequired(ClientQuotaType.REQUEST));
            assertFalse(callback.quotaResetRequired(ClientQuotaType.CONTROLLER_MUTATION));
        }
    }

    @Test
    @Tag("C8")
    void aPoolThatIsNotInUseHasNoLimit() throws Exception {
        decision.write("OPEN", 1);
        KquotaCallback callback = start();
        assertNull(callback.quotaLimit(PRODUCE, Tags.PAUSED));
        assertNull(callback.quotaLimit(PRODUCE, Tags.NEWCOMERS));
        assertNull(callback.quotaLimit(PRODUCE, Tags.of("nobody", "")));
        assertNull(callback.quotaLimit(PRODUCE, Map.of()));
    }

    @Test
    @Tag("C3")
    void onlyProduceIsScaled() throws Exception {
        decision.write("PAUSE", 0);
        KquotaCallback callback = start();
        callback.updateQuota(ClientQuotaType.FETCH, client("app"), 2e6);
        callback.updateQuota(ClientQuotaType.REQUEST, client("app"), 50);
        callback.updateQuota(ClientQuotaType.CONTROLLER_MUTATION, client("app"), 5);
        assertTrue(holds(callback));
        for (ClientQuotaType type : List.of(ClientQuotaType.FETCH, ClientQuotaType.REQUEST, ClientQuotaType.CONTROLLER_MUTATION)) {
            Map<String, String> tags = callback.quotaMetricTags(type, ALICE, "app");
            assertEquals(Tags.of("", "app"), tags);
            assertEquals(type == ClientQuotaType.FETCH ? 2e6 : type == ClientQuotaType.REQUEST ? 50 : 5, callback.quotaLimit(type, tags));
        }
    }

    @Test
    @Tag("A17")
    void exemptPrincipalsAreNeverHeldAndNoClientIdExempts() throws Exception {
        decision.write("PAUSE", 0);
        KquotaCallback callback = start();
        for (ClientQuotaType type : List.of(PRODUCE, ClientQuotaType.FETCH, ClientQuotaType.REQUEST)) {
            callback.updateQuota(type, client("kquota-1-publish"), 1);
            Map<String, String> tags = callback.quotaMetricTags(type, ADMIN, "kquota-1-publish");
            assertNull(callback.quotaLimit(type, tags));
            assertNotEquals(tags, callback.quotaMetricTags(type, ALICE, "kquota-1-publish"));
        }
        assertEquals(Tags.PAUSED, callback.quotaMetricTags(PRODUCE, ALICE, "User:admin"));
        assertEquals(Tags.PAUSED, callback.quotaMetricTags(PRODUCE, new KafkaPrincipal("Group", "admin"), "x"));
        assertEquals(Tags.PAUSED, callback.quotaMetricTags(PRODUCE, KafkaPrincipal.ANONYMOUS, "admin"));
    }

    @Test
    @Tag("C13")
    @Tag("F24")
    void anErrorInsideNeitherFailsARequestNorLiftsAPause() throws Exception {
        decision.write("PAUSE", 0);
        FaultyCallback callback = start(new FaultyCallback());
        Map<String, String> tags = callback.quotaMetricTags(PRODUCE, ALICE, "poison");
        assertEquals(Tags.PAUSED, tags);
        assertTrue(callback.quotaLimit(PRODUCE, tags) < 2e6);
        assertFalse(callback.quotaResetRequired(PRODUCE));
        callback.updateQuota(PRODUCE, List::of, 5);
        callback.removeQuota(PRODUCE, null);
        callback.updateClusterMetadata(null);
        decision.write("OPEN", 1);
        await("OPEN", () -> !callback.quotaMetricTags(PRODUCE, ALICE, "poison").equals(Tags.PAUSED));
        await("counted", () -> {
            try {
                String applied = Files.readString(directory.resolve("applied/applied.json"));
                return applied.contains("an injected fault") && applied.contains("\"quota_update\",\n    \"count\" : 2") && applied.contains("\"metadata\",\n    \"count\" : 1");
            } catch (java.io.IOException e) {
                return false;
            }
        });
    }

    @Test
    void bothRolesOfACombinedNodeShareOneState() throws Exception {
        decision.write("OPEN", 1);
        KquotaCallback controller = start();
        KquotaCallback broker = start();
        controller.updateQuota(PRODUCE, client("app"), 7e6);
        Map<String, String> tags = broker.quotaMetricTags(PRODUCE, ALICE, "app");
        assertEquals(7e6, broker.quotaLimit(PRODUCE, tags));
        open.remove(broker);
        broker.close();
        decision.write("PAUSE", 0);
        await("the other instance goes on", () -> holds(controller));
    }

    @Test
    void twoBrokersInOneJvmAreApart(@TempDir Path elsewhere) throws Exception {
        decision.write("PAUSE", 0);
        new TestDecision(elsewhere).write("OPEN", 1);
        KquotaCallback one = start();
        properties = TestProperties.broker(elsewhere);
        properties.put(KquotaConfig.MODE, "enforce");
        KquotaCallback two = start();
        assertTrue(holds(one));
        assertFalse(holds(two));
    }

    @Test
    void aControllerOnlyNodeServesQuotasAndIgnoresTheDecision() throws Exception {
        decision.write("PAUSE", 0);
        properties.put("process.roles", "controller");
        KquotaCallback callback = start();
        assertFalse(holds(callback));
        callback.updateQuota(ClientQuotaType.CONTROLLER_MUTATION, client("app"), 5);
        assertEquals(5, callback.quotaLimit(ClientQuotaType.CONTROLLER_MUTATION,
            callback.quotaMetricTags(ClientQuotaType.CONTROLLER_MUTATION, ADMIN, "app")));
        assertEquals(List.of(), threads("kquota-decision-1"));
        assertFalse(Files.exists(directory.resolve("applied/applied.json")));
    }

    @Test
    void aDecisionForAnotherClusterIsLostOnceTheClusterIsKnown() throws Exception {
        decision.write("OPEN", 1);
        KquotaCallback callback = start();
        assertFalse(holds(callback));
        callback.updateClusterMetadata(new Cluster("other", List.of(), List.of(), java.util.Set.of(), java.util.Set.of()));
        await("PAUSE", () -> holds(callback));
        callback.updateClusterMetadata(new Cluster("c", List.of(), List.of(), java.util.Set.of(), java.util.Set.of()));
        await("OPEN", () -> !holds(callback));
    }

    @Test
    @Tag("C12")
    void closeReleasesEveryThreadAndFile() throws Exception {
        decision.write("OPEN", 1);
        start().close();
        open.clear();
        long before = openFiles();
        for (int i = 0; i < 20; i++) {
            KquotaCallback callback = start();
            assertEquals(1, threads("kquota-decision-1").size());
            open.clear();
            callback.close();
            assertEquals(List.of(), threads("kquota-"));
        }
        assertTrue(openFiles() <= before + 2, before + " files before, " + openFiles() + " after");
    }

    private static long openFiles() throws Exception {
        try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
            return files.count();
        }
    }

    private static List<Thread> threads(String prefix) {
        return Thread.getAllStackTraces().keySet().stream().filter(thread -> thread.getName().startsWith(prefix) && thread.isAlive()).toList();
    }

    private record Part(ClientQuotaEntity.ConfigEntityType entityType, String name) implements ClientQuotaEntity.ConfigEntity {
    }

    private static ClientQuotaEntity client(String name) {
        return () -> Arrays.asList(new Part(ClientQuotaEntity.ConfigEntityType.CLIENT_ID, name));
    }

    private Errors.Tally errors(Errors.Kind kind) {
        BrokerNode node = Nodes.acquire(new KquotaConfig(properties), new BootClock());
        try {
            return node.errors().tally(kind);
        } finally {
            Nodes.release(node);
        }
    }

    @ParameterizedTest
    @CsvSource({"true,alice,1", "true,admin,0", "false,alice,0"})
    @Tag("F33")
    void theWriterOfTheMetadataOfTieredStorageIsReportedOnceIfItIsNotExempt(boolean tiered, String user, int reported) throws Exception {
        properties.put("remote.log.storage.system.enable", String.valueOf(tiered));
        KquotaCallback callback = start();
        for (int i = 0; i < 5; i++) {
            callback.quotaMetricTags(PRODUCE, new KafkaPrincipal("User", user), "__remote_log_metadata_client_1_producer");
            // Two looks.
            Thread.sleep(250);
        }
        await("a look, if it is to be reported", () -> errors(Errors.Kind.TIERED_STORAGE).count() >= reported);
        Errors.Tally tally = errors(Errors.Kind.TIERED_STORAGE);
        assertEquals(reported, tally.count());
        assertTrue(reported == 0 || tally.lastMessage().contains("User:alice") && tally.lastMessage().contains("kquota.exempt.principals"));
    }

    @Test
    void aMissingJmxReporterIsReportedAtOnce() {
        start();
        assertEquals(0, errors(Errors.Kind.GOVERNOR).count());
        close();
        open.clear();
        properties.put("metric.reporters", "org.example.Other");
        start();
        Errors.Tally tally = errors(Errors.Kind.GOVERNOR);
        assertEquals(1, tally.count());
        assertTrue(tally.lastMessage().contains("metric.reporters"), tally.lastMessage());
    }
}
