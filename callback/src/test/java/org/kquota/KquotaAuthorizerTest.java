package org.kquota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.kquota.config.KquotaConfig;
import org.kquota.decision.BootClock;
import org.kquota.decision.State;
import org.kquota.error.Errors;
import org.kquota.node.BrokerNode;
import org.kquota.node.Nodes;
import org.slf4j.MDC;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** The requests that the fence refuses, and those that it leaves alone. */
class KquotaAuthorizerTest {
    private static final List<Action> WRITE = List.of(TestRequest.writeTo("orders"));

    @TempDir
    private Path directory;
    private TestDecision decision;
    private Map<String, Object> properties;
    private AuthorizerWithoutMetrics authorizer;

    /** Denies whatever is named so, fails on whatever is named so, and allows the rest. */
    public static final class ByName implements Authorizer, Monitorable {
        private static boolean closed;
        private static PluginMetrics metrics;

        @Override
        public void withPluginMetrics(PluginMetrics given) {
            metrics = given;
        }

        @Override
        public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
            return actions.stream().map(action -> switch (action.resourcePattern().name()) {
                case "denied" -> AuthorizationResult.DENIED;
                case "fails" -> throw new IllegalStateException("the cluster's own authorizer fails");
                default -> AuthorizationResult.ALLOWED;
            }).toList();
        }

        @Override
        public Map<org.apache.kafka.common.Endpoint, ? extends java.util.concurrent.CompletionStage<Void>> start(AuthorizerServerInfo info) {
            return Map.of();
        }

        @Override
        public List<? extends java.util.concurrent.CompletionStage<org.apache.kafka.server.authorizer.AclCreateResult>> createAcls(
                AuthorizableRequestContext context, List<org.apache.kafka.common.acl.AclBinding> bindings) {
            return List.of();
        }

        @Override
        public List<? extends java.util.concurrent.CompletionStage<org.apache.kafka.server.authorizer.AclDeleteResult>> deleteAcls(
                AuthorizableRequestContext context, List<org.apache.kafka.common.acl.AclBindingFilter> filters) {
            return List.of();
        }

        @Override
        public Iterable<org.apache.kafka.common.acl.AclBinding> acls(org.apache.kafka.common.acl.AclBindingFilter filter) {
            return List.of();
        }

        @Override
        public void configure(Map<String, ?> properties) {
            closed = false;
        }

        @Override
        public void close() {
            closed = true;
        }
    }

    @BeforeEach
    void aBroker() throws IOException {
        decision = new TestDecision(directory);
        properties = TestProperties.broker(directory);
        properties.put(KquotaConfig.MODE, "enforce");
        properties.put(KquotaConfig.FENCE_AUTHORIZER_CLASS, ByName.class.getName());
        properties.put("client.quota.callback.class", KquotaCallback.class.getName());
    }

    @AfterEach
    void close() throws IOException {
        MDC.clear();
        if (authorizer != null) {
            authorizer.close();
        }
    }

    private void start(AuthorizerWithoutMetrics made) {
        authorizer = made;
        authorizer.configure(properties);
    }

    private void start(String state, double factor) throws IOException {
        decision.write(state, factor);
        start(new KquotaAuthorizer());
    }

    private List<AuthorizationResult> ask(ApiKeys type, String user, List<Action> actions) {
        return authorizer.authorize(TestRequest.of(type, user), actions);
    }

    private boolean refused(String user, List<Action> actions) {
        try {
            ask(ApiKeys.PRODUCE, user, actions);
            return false;
        } catch (NotEnoughReplicasException e) {
            return true;
        }
    }

    @Test
    void inPauseProduceRequestsAreRefusedWithAnErrorThatClientsRetry() throws IOException {
        start("PAUSE", 0);
        NotEnoughReplicasException refusal = assertThrows(NotEnoughReplicasException.class, () -> ask(ApiKeys.PRODUCE, "alice", WRITE));
        assertTrue(refusal.getMessage().contains("kquota"), refusal.getMessage());
        assertEquals(0, refusal.getStackTrace().length, "it is thrown for every request");
    }

    @ParameterizedTest
    @CsvSource({"OPEN,1", "THROTTLE,0.5"})
    void outsideOfPauseNothingIsRefused(String state, double factor) throws IOException {
        start(state, factor);
        assertEquals(List.of(AuthorizationResult.ALLOWED), ask(ApiKeys.PRODUCE, "alice", WRITE));
    }

    @ParameterizedTest
    @EnumSource(value = ApiKeys.class, names = "PRODUCE", mode = EnumSource.Mode.EXCLUDE)
    @Tag("C3")
    void onlyProduceRequestsAreRefused(ApiKeys type) throws IOException {
        start("PAUSE", 0);
        assertEquals(List.of(AuthorizationResult.ALLOWED), ask(type, "alice", WRITE));
    }

    @Test
    void theClustersOwnAuthorizerHasItsMetrics() throws IOException {
        decision.write("OPEN", 1);
        KquotaAuthorizer withMetrics = new KquotaAuthorizer();
        start(withMetrics);
        try (PluginMetricsImpl given = new PluginMetricsImpl(new Metrics(), Map.of())) {
            withMetrics.withPluginMetrics(given);
            assertSame(given, ByName.metrics);
        }
    }

    /** As in Kafka 4.0. */
    @Test
    void aFenceWithoutMetricsIsInstalledBesideACallbackWithoutThem() throws IOException {
        properties.put("client.quota.callback.class", CallbackWithoutMetrics.class.getName());
        start("PAUSE", 0);
        assertTrue(refused("alice", WRITE));
    }

    @Test
    void whatAProduceRequestAsksBesidesIsNotRefused() throws IOException {
        start("PAUSE", 0);
        assertFalse(refused("alice", List.of(TestRequest.action(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "orders"))));
        assertFalse(refused("alice", List.of(TestRequest.action(AclOperation.DESCRIBE, ResourceType.TOPIC, "orders"))));
        assertFalse(refused("alice", List.of()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"})
    void topicsThatBrokersWriteAreLeftAlone(String topic) throws IOException {
        start("PAUSE", 0);
        assertFalse(refused("alice", List.of(TestRequest.writeTo(topic))));
        assertTrue(refused("alice", List.of(TestRequest.writeTo(topic), TestRequest.writeTo("orders"))), "but not as a pretext");
    }

    @Test
    void exemptPrincipalsAreNeverRefused() throws IOException {
        start("PAUSE", 0);
        assertFalse(refused("admin", WRITE));
        assertFalse(refused("CN=agent,O=x", WRITE));
        assertTrue(refused("ADMIN", WRITE));
        assertTrue(refused("ANONYMOUS", WRITE));
        assertThrows(NotEnoughReplicasException.class, () -> authorizer.authorize(new TestRequest(ApiKeys.PRODUCE.id,
            new org.apache.kafka.common.security.auth.KafkaPrincipal("Group", "admin"), "kquota-1-publish"), WRITE));
    }

    @Test
    void aDeniedClientGetsThatAnswerInAPauseToo() throws IOException {
        start("PAUSE", 0);
        List<Action> denied = List.of(TestRequest.writeTo("denied"));
        assertEquals(List.of(AuthorizationResult.DENIED), ask(ApiKeys.PRODUCE, "alice", denied));
        assertTrue(refused("alice", List.of(TestRequest.writeTo("denied"), TestRequest.writeTo("orders"))));
        assertThrows(IllegalStateException.class, () -> ask(ApiKeys.PRODUCE, "alice", List.of(TestRequest.writeTo("fails"))));
    }

    @Test
    void observingRefusesNoRequest() throws IOException {
        decision.write("PAUSE", 0, "observe", 60_000);
        start(new KquotaAuthorizer());
        assertFalse(refused("alice", WRITE));
    }

    @Test
    void theBrokersOwnModeCountsToo() throws IOException {
        properties.put(KquotaConfig.MODE, "observe");
        start("PAUSE", 0);
        assertFalse(refused("alice", WRITE));
    }

    @Test
    void withoutADecisionTheLostActionHolds() throws IOException {
        start(new KquotaAuthorizer());
        assertTrue(refused("alice", WRITE));
        authorizer.close();
        properties.put(KquotaConfig.DECISION_LOST_ACTION, "open");
        start(new KquotaAuthorizer());
        assertFalse(refused("alice", WRITE));
    }

    @Test
    void theEndOfTheLeaseNeedsNoLook() throws Exception {
        decision.write("OPEN", 1, "enforce", 3_000);
        start(new KquotaAuthorizer());
        BrokerNode node = Nodes.acquire(new KquotaConfig(properties), new BootClock());
        try {
            node.close();
            assertFalse(refused("alice", WRITE));
            TestDecision.await("its threads are dead, and the lease is over", () -> refused("alice", WRITE));
        } finally {
            Nodes.release(node);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void callbackAndFenceShareWhatTheyKnow(boolean callbackFirst) throws Exception {
        decision.write("OPEN", 1);
        try (KquotaCallbackOf callback = new KquotaCallbackOf(properties, callbackFirst)) {
            start(new KquotaAuthorizer());
            callback.start();
            Map<String, Object> observing = new java.util.HashMap<>(properties);
            decision.write("PAUSE", 0);
            TestDecision.await("PAUSE", () -> refused("alice", WRITE));
            observing.put(KquotaConfig.MODE, "observe");
            callback.plugin.reconfigure(observing);
            TestDecision.await("the broken glass", () -> !refused("alice", WRITE));
        }
        assertFalse(refused("alice", WRITE), "the callback's end leaves the fence its state");
    }

    private static final class KquotaCallbackOf implements AutoCloseable {
        private final KquotaCallback plugin = new KquotaCallback();
        private final Map<String, Object> properties;
        private boolean started;

        KquotaCallbackOf(Map<String, Object> properties, boolean now) {
            this.properties = properties;
            if (now) {
                start();
            }
        }

        void start() {
            if (!started) {
                plugin.configure(properties);
                started = true;
            }
        }

        @Override
        public void close() {
            plugin.close();
        }
    }

    @Test
    void aFaultLeavesTheRequestToTheGovernor() throws IOException {
        decision.write("PAUSE", 0);
        start(new FaultyAuthorizer());
        BrokerNode node = Nodes.acquire(new KquotaConfig(properties), new BootClock());
        try {
            assertTrue(node.fence().reliable());
            TestRequest poisoned = new TestRequest(ApiKeys.PRODUCE.id, TestRequest.of(ApiKeys.PRODUCE, "alice").principal(), "poison");
            assertEquals(List.of(AuthorizationResult.ALLOWED), authorizer.authorize(poisoned, WRITE));
            assertFalse(node.fence().reliable(), "so that the governor holds, and the report shows it");
            assertEquals(1, node.errors().tally(Errors.Kind.FENCE).count());
            assertTrue(refused("alice", WRITE), "it still refuses all that it can");
            assertEquals(State.PAUSE, node.now().enforced());
            assertEquals(1, node.fence().refusals());
        } finally {
            Nodes.release(node);
        }
    }

    @Test
    void theThreadIsMarkedForTheLogUntilItsNextRequest() throws IOException {
        start("PAUSE", 0);
        assertNull(MDC.get(KquotaAuthorizer.LOG_CONTEXT_KEY));
        assertTrue(refused("alice", WRITE));
        assertEquals("refused", MDC.get("kquota"));
        assertFalse(refused("admin", WRITE));
        assertNull(MDC.get("kquota"));
    }

    @Test
    void aControllerOnlyDelegates() throws IOException {
        properties.put("process.roles", "controller");
        properties.remove("client.quota.callback.class");
        start("PAUSE", 0);
        assertFalse(refused("alice", WRITE));
        assertFalse(Files.exists(directory.resolve("applied/applied.json")));
    }

    @Test
    void itNeedsTheCallback() throws IOException {
        for (String other : new String[] {null, "org.apache.kafka.server.quota.ClientQuotaCallback"}) {
            properties.put("client.quota.callback.class", other);
            ConfigException refused = assertThrows(ConfigException.class, () -> start("PAUSE", 0));
            assertTrue(refused.getMessage().contains("client.quota.callback.class"), refused.getMessage());
        }
    }

    @Test
    void onlyTheWordNoneAllowsEverything() throws IOException {
        for (String absent : new String[] {"", "  ", null}) {
            properties.put(KquotaConfig.FENCE_AUTHORIZER_CLASS, absent);
            ConfigException refused = assertThrows(ConfigException.class, () -> start("PAUSE", 0));
            assertTrue(refused.getMessage().contains("kquota.fence.authorizer.class"), refused.getMessage());
            assertTrue(refused.getMessage().contains("none"), refused.getMessage());
        }
        properties.put(KquotaConfig.FENCE_AUTHORIZER_CLASS, "none ");
        start("PAUSE", 0);
        assertEquals(List.of(AuthorizationResult.ALLOWED), ask(ApiKeys.FETCH, "alice", List.of(TestRequest.writeTo("denied"))));
        assertTrue(refused("alice", WRITE));
    }

    @Test
    void closingEndsItAndWhatItWraps() throws IOException {
        start("PAUSE", 0);
        BrokerNode node = Nodes.acquire(new KquotaConfig(properties), new BootClock());
        assertTrue(node.fence().installed());
        authorizer.close();
        assertTrue(ByName.closed);
        assertFalse(node.fence().installed());
        authorizer.close();
        assertFalse(node.fence().installed());
        Nodes.release(node);
    }
}
