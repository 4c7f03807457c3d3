package org.kquota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.kquota.TestDecision.await;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntityType;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.kquota.config.KquotaConfig;
import org.kquota.quota.Tags;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** The limit that the broker is given for tags that it has: where it cannot be worked out, and where they are no longer in use. */
class LimitsOfTagsTest {
    private static final ClientQuotaType PRODUCE = ClientQuotaType.PRODUCE;
    private static final KafkaPrincipal ALICE = new KafkaPrincipal("User", "alice");
    private static final Part USER = new Part(ConfigEntityType.USER, "alice");
    private static final Part CLIENT = new Part(ConfigEntityType.CLIENT_ID, "app");
    private static final Map<String, String> NEVER_ASKED_FOR = Tags.of("", "never asked for");

    @TempDir
    private Path directory;
    private TestDecision decision;
    private final CallbackWithoutMetrics callback = new FaultyCallback();

    private record Part(ConfigEntityType entityType, String name) implements ClientQuotaEntity.ConfigEntity {
    }

    private static ClientQuotaEntity entity(Part... parts) {
        return () -> List.of(parts);
    }

    @BeforeEach
    void enforcing() throws Exception {
        decision = new TestDecision(directory);
        decision.write("OPEN", 1);
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put(KquotaConfig.MODE, "enforce");
        callback.configure(properties);
    }

    @AfterEach
    void close() {
        callback.close();
    }

    private Map<String, String> tags(ClientQuotaType type, String clientId) {
        return callback.quotaMetricTags(type, ALICE, clientId);
    }

    /** Every call by this thread from here on throws inside. */
    private void fault() {
        tags(PRODUCE, "poison");
    }

    private void throttle() throws Exception {
        decision.write("THROTTLE", 0.5);
        await("THROTTLE", () -> tags(PRODUCE, "new").equals(Tags.NEWCOMERS));
    }

    @ParameterizedTest
    @EnumSource(ClientQuotaType.class)
    @Tag("C13")
    void aFaultInOpenLeavesTheLastLimit(ClientQuotaType type) {
        callback.updateQuota(type, entity(CLIENT), 2e6);
        Map<String, String> app = tags(type, "app");
        assertEquals(2e6, callback.quotaLimit(type, app));
        fault();
        assertEquals(2e6, callback.quotaLimit(type, app));
        assertNull(callback.quotaLimit(type, NEVER_ASKED_FOR));
    }

    @Test
    @Tag("C13")
    void aFaultInThrottleLeavesTheLastLimitOrThatOfThePoolIfItIsLower() throws Exception {
        callback.updateQuota(PRODUCE, entity(CLIENT), 1_000);
        callback.updateQuota(PRODUCE, entity(new Part(ConfigEntityType.CLIENT_ID, "fast")), 1e12);
        throttle();
        Map<String, String> app = tags(PRODUCE, "app");
        Map<String, String> fast = tags(PRODUCE, "fast");
        assertEquals(1_000, callback.quotaLimit(PRODUCE, app));
        assertEquals(1e12, callback.quotaLimit(PRODUCE, fast), "it was not producing, and keeps its quota");
        fault();
        Double ofPool = callback.quotaLimit(PRODUCE, NEVER_ASKED_FOR);
        assertTrue(ofPool > 1_000 && ofPool < 1e12, "limit of the pool: " + ofPool);
        assertEquals(1_000, callback.quotaLimit(PRODUCE, app));
        assertTrue(callback.quotaLimit(PRODUCE, fast) < 1e12, "the fault may hide that it is held");
    }

    /** The example of KIP-257: "this is a {user, client-id} quota metric and the quota now in use is a {user} quota". */
    @ParameterizedTest
    @EnumSource(ClientQuotaType.class)
    @Tag("C2")
    void tagsOfAUserAndAClientIdHaveNoLimitOnceTheQuotaInUseIsTheUsers(ClientQuotaType type) {
        callback.updateQuota(type, entity(USER, CLIENT), 3e6);
        Map<String, String> before = tags(type, "app");
        assertEquals(Tags.of("alice", "app"), before);
        assertEquals(3e6, callback.quotaLimit(type, before));
        callback.updateQuota(type, entity(USER), 2e6);
        callback.removeQuota(type, entity(USER, CLIENT));
        Map<String, String> after = tags(type, "app");
        assertEquals(Tags.of("alice", ""), after);
        assertEquals(2e6, callback.quotaLimit(type, after));
        assertNull(callback.quotaLimit(type, before));
    }

    @Test
    @Tag("C2")
    void tagsOfAUserOrAClientIdHaveNoLimitOnceItsQuotaIsGone() {
        callback.updateQuota(PRODUCE, entity(USER), 2e6);
        Map<String, String> ofUser = tags(PRODUCE, "app");
        callback.updateQuota(PRODUCE, entity(CLIENT), 1e6);
        callback.removeQuota(PRODUCE, entity(USER));
        assertNull(callback.quotaLimit(PRODUCE, ofUser));
        Map<String, String> ofClientId = tags(PRODUCE, "app");
        assertEquals(1e6, callback.quotaLimit(PRODUCE, ofClientId));
        callback.updateQuota(PRODUCE, entity(USER), 2e6);
        callback.removeQuota(PRODUCE, entity(CLIENT));
        assertNull(callback.quotaLimit(PRODUCE, ofClientId));
    }
}
