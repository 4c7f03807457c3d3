package org.kquota.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.kquota.TestRequest;
import org.kquota.admission.Target;
import org.kquota.decision.Decision;
import org.kquota.decision.DecisionInForce;
import org.kquota.decision.EffectiveDecision;
import org.kquota.decision.Mode;
import org.kquota.decision.State;
import org.kquota.decision.TopicFactors;
import org.kquota.error.Errors;
import org.kquota.group.Group;
import org.kquota.group.GroupLimit;
import org.kquota.group.Groups;
import org.kquota.group.GroupsBuilder;
import org.kquota.metering.NodeQuotas;
import org.kquota.quota.ExemptPrincipals;
import org.kquota.quota.StaticQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.Tags;
import org.kquota.threshold.ConstantBytesIn;
import org.kquota.threshold.Thresholds;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/** Which requests the fence refuses, without a broker and without another authorizer. */
class FenceTest {
    private static final TestRequest ALICE = TestRequest.of(ApiKeys.PRODUCE, "alice");
    private static final Action WRITE = TestRequest.writeTo("orders");

    @TempDir
    private Path directory;
    private final Group group = new Group("team", null, Map.of(ClientQuotaType.PRODUCE, new GroupLimit(1e6, null)));
    private long landed;
    private final AtomicInteger faults = new AtomicInteger();
    private final NodeQuotas quotas = new NodeQuotas(ExemptPrincipals.parse("User:admin;User:agent").withAgents("User:agent", 1000), groups(), type -> StaticQuotas.NONE, 10,
        new DecisionInForce(decided(State.OPEN)));
    private final Errors errors = new Errors();
    private Fence fence;
    private long nanos = System.nanoTime();
    private Thresholds thresholds;

    private Groups groups() {
        GroupsBuilder groups = new GroupsBuilder();
        groups.add(group);
        groups.addPrincipal("User:bob", group);
        return groups.build();
    }

    private static EffectiveDecision decided(State state) {
        double factor = state == State.OPEN ? 1 : state == State.PAUSE ? 0 : 0.5;
        return EffectiveDecision.decided(new Decision(1, "c", 1, 1, Mode.ENFORCE, state, factor, false, "b", 1), Mode.ENFORCE,
            System.nanoTime() + 3_600_000_000_000L, State.PAUSE);
    }

    /** A topic named over is over its threshold, if there is one. */
    private void fence(State state, boolean thresholdsInForce) throws IOException {
        Path file = directory.resolve("topics.json");
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
        if (thresholdsInForce) {
            Files.writeString(file, "{\"schema_version\": 1, \"total.bytes.in.per.sec.threshold\": 100, "
                + "\"topics\": {\"over\": {\"bytes.in.per.sec.threshold\": 40}}}");
            Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
        }
        thresholds = new Thresholds(file, Set.of(), new ConstantBytesIn(200, 50), () -> null, errors);
        thresholds.read();
        thresholds.judge(System.nanoTime());
        quotas.decision().publish(decided(state));
        fence = new Fence(quotas, thresholds, errors, faults::incrementAndGet, () -> nanos);
    }

    private String refusal(AuthorizableRequestContext request, Action... actions) {
        return fence.refusal(request, List.of(actions), Collections.nCopies(actions.length, AuthorizationResult.ALLOWED));
    }

    /** As the broker makes it. */
    private static RequestContext on(String connection, String user) {
        return new RequestContext(new RequestHeader(ApiKeys.PRODUCE, ApiKeys.PRODUCE.latestVersion(), "app", 1), connection, InetAddress.getLoopbackAddress(),
            new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user), new ListenerName("CLIENTS"), SecurityProtocol.SASL_PLAINTEXT, ClientInformation.EMPTY, false);
    }

    /** Kafka would take its sequence number as the first one, and never that of the refused records. */
    @Test
    void aRequestThatWasUnderWayWhenAnEarlierOneOfItsConnectionWasRefusedIsRefusedEvenInOpen() throws IOException {
        fence(State.PAUSE, false);
        assertNotNull(refusal(on("one", "alice"), WRITE));
        quotas.decision().publish(decided(State.OPEN));
        assertEquals("kquota: an earlier request of this connection was refused, and its records come first", refusal(on("one", "alice"), WRITE));
        assertEquals(2, fence.refusals());
        assertEquals(2, fence.refused().top(1).get(0).requests());
        assertNull(refusal(on("two", "alice"), WRITE));
        assertNull(refusal(on("one", "alice"), TestRequest.writeTo("clicks")));
        assertNull(refusal(on("one", "alice"), TestRequest.writeTo("__consumer_offsets")));
        assertNull(refusal(ALICE, WRITE));
        nanos += 61_000_000L;
        assertNull(refusal(on("one", "alice"), WRITE));
    }

    @Test
    void inPauseWhatWouldBeAppendedIsRefusedAndCounted() throws IOException {
        fence(State.PAUSE, false);
        assertEquals("kquota: producers are paused, because a disk of the cluster is too full", refusal(ALICE, WRITE));
        assertEquals(1, fence.refusals());
        assertEquals(0, group.refusals());
        assertNotNull(refusal(TestRequest.of(ApiKeys.PRODUCE, "bob"), WRITE));
        assertEquals(1, group.refusals());
        assertEquals(List.of("User:alice", "User:bob"), fence.refused().top(5).stream().map(count -> count.principal()).toList());
        assertEquals(2, fence.refusals());
    }

    @ParameterizedTest
    @EnumSource(State.class)
    void anAgentInDebtIsRefusedInEveryStateAndCountedByItsName(State state) throws IOException {
        fence(state, false);
        TestRequest agent = TestRequest.of(ApiKeys.PRODUCE, "agent");
        assertNull(refusal(agent, WRITE));
        fence.debts().note(Tags.agent("agent"), 3000, 1000, 10, nanos);
        fence.debts().note(Tags.exempt("admin"), 3000, 1000, 10, nanos);
        assertEquals("kquota: this agent has produced more than its quota on this broker", refusal(agent, WRITE));
        assertEquals(0, fence.refusals(), "it was not refused for a pause");
        assertEquals(List.of("User:agent"), fence.refused().top(5).stream().map(count -> count.principal()).toList());
        assertNull(refusal(TestRequest.of(ApiKeys.PRODUCE, "admin"), WRITE));
        assertNull(refusal(TestRequest.of(ApiKeys.FETCH, "agent"), WRITE));
        assertNull(fence.refusal(agent, List.of(WRITE), List.of(AuthorizationResult.DENIED)), "the cluster's own answer");
        nanos += 20_100_000_000L;
        assertNull(refusal(agent, WRITE), "its bytes are paid for");
    }

    @Test
    void whereNothingIsEnforcedAnAgentInDebtIsNotRefused() throws IOException {
        fence(State.OPEN, false);
        fence.debts().note(Tags.agent("agent"), 3000, 1000, 10, nanos);
        quotas.decision().publish(decided(State.OPEN).observed());
        assertNull(refusal(TestRequest.of(ApiKeys.PRODUCE, "agent"), WRITE));
    }

    @ParameterizedTest
    @ValueSource(strings = {"OPEN", "THROTTLE"})
    void otherwiseNothingIsRefused(State state) throws IOException {
        fence(state, false);
        assertNull(refusal(ALICE, WRITE));
        assertEquals(0, fence.refusals());
    }

    @Test
    void onlyProduceRequestsOfClientsThatMayWriteToTopicsOfClientsAreRefused() throws IOException {
        fence(State.PAUSE, false);
        assertNull(refusal(TestRequest.of(ApiKeys.FETCH, "alice"), WRITE));
        assertNull(refusal(TestRequest.of(ApiKeys.PRODUCE, "admin"), WRITE));
        assertNull(refusal(ALICE, TestRequest.action(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "orders")));
        assertNull(refusal(ALICE, TestRequest.action(AclOperation.DESCRIBE, ResourceType.TOPIC, "orders")));
        assertNull(refusal(ALICE, TestRequest.writeTo("__consumer_offsets")));
        assertNull(fence.refusal(ALICE, List.of(WRITE), List.of(AuthorizationResult.DENIED)));
        assertNull(refusal(ALICE));
        assertNotNull(refusal(ALICE, TestRequest.writeTo("__consumer_offsets"), WRITE), "any of them suffices");
    }

    @Test
    void aTopicOverItsThresholdIsRefusedWithoutAPause() throws IOException {
        fence(State.OPEN, true);
        Action over = TestRequest.writeTo("over");
        assertEquals("kquota: topic over is over its threshold of bytes in", refusal(ALICE, over));
        assertNotNull(refusal(ALICE, WRITE, over));
        assertNull(refusal(ALICE, WRITE));
        assertNull(refusal(TestRequest.of(ApiKeys.PRODUCE, "admin"), over));
        assertEquals(2, thresholds.gate().refusals());
        assertEquals(0, fence.refusals(), "none was refused for a pause");
        assertEquals(2, fence.refused().top(5).get(0).requests());
    }

    @Test
    void inThrottleByAdmissionWhatIsBeyondTheTargetIsRefusedAndCounted() throws IOException {
        fence(State.THROTTLE, true);
        quotas.admission().plan(new Target(0.5, 0, 1e6, 0.05, 1, 0), () -> landed, System.nanoTime() - 60_000_000_000L);
        quotas.admission().plan(new Target(0.5, 0, 1e6, 0.05, 1, 0), () -> landed, System.nanoTime());
        assertNull(refusal(ALICE, WRITE), "there is room");
        landed = 50_000_000;
        assertEquals("kquota: producers are slowed down, because a disk of the cluster is filling; this request has to wait", refusal(ALICE, WRITE));
        assertEquals(1, fence.refusals());
        assertEquals(List.of("User:alice"), fence.refused().top(5).stream().map(count -> count.principal()).toList());
        assertNotNull(refusal(TestRequest.of(ApiKeys.PRODUCE, "bob"), WRITE));
        assertEquals(1, group.refusals());
        assertNull(refusal(TestRequest.of(ApiKeys.PRODUCE, "admin"), WRITE), "an exempt principal is always admitted");
        assertNull(refusal(TestRequest.of(ApiKeys.FETCH, "alice"), WRITE));
        assertNull(refusal(ALICE, TestRequest.writeTo("__consumer_offsets")));
        assertNull(fence.refusal(ALICE, List.of(WRITE), List.of(AuthorizationResult.DENIED)));
        assertEquals("kquota: topic over is over its threshold of bytes in", refusal(ALICE, TestRequest.writeTo("over")));
        assertEquals(2, fence.refusals());
        quotas.admission().end();
        assertNull(refusal(ALICE, WRITE), "the governor holds producers then");
    }

    /** Between the two the turn may have come, and the records of the second would stand before those of the first. */
    @Test
    void inThrottleARequestBehindARefusedOneIsRefusedAlthoughItIsItsTurn() throws IOException {
        fence(State.THROTTLE, false);
        quotas.admission().plan(new Target(0.5, 0, 1e6, 0.05, 1, 0), () -> landed, nanos - 60_000_000_000L);
        landed = 50_000_000;
        quotas.admission().plan(new Target(0.5, 0, 1e6, 0.05, 1, 0), () -> landed, nanos);
        assertTrue(refusal(on("one", "alice"), WRITE).contains("has to wait"));
        landed = 0;
        quotas.admission().plan(new Target(0.5, 0, 1e6, 0.05, 1, 0), () -> landed, nanos);
        assertEquals("kquota: an earlier request of this connection was refused, and its records come first", refusal(on("one", "alice"), WRITE));
        assertEquals(2, fence.refusals());
        assertNull(refusal(on("two", "alice"), WRITE), "it is its turn");
        nanos += 61_000_000L;
        assertNull(refusal(on("one", "alice"), WRITE));
    }

    @Test
    void whoStandsBehindARefusedRequestWaitsForItsTurnLikeOthers() throws IOException {
        fence(State.PAUSE, false);
        assertNotNull(refusal(on("one", "alice"), WRITE));
        quotas.decision().publish(decided(State.THROTTLE));
        quotas.admission().plan(new Target(0.5, 0, 1e6, 0.05, 1, 0), () -> landed, nanos);
        assertTrue(refusal(on("one", "alice"), WRITE).contains("come first"));
        TagSet tagSet = quotas.tagSets(ClientQuotaType.PRODUCE).all().stream().findFirst().orElseThrow();
        assertTrue(tagSet.share().isRefused(), "it is waited for");
    }

    private void publish(Map<String, Double> topics, double others, Mode mode) {
        quotas.decision().publish(EffectiveDecision.decided(new Decision(1, "c", 1, 1, Mode.ENFORCE, State.PAUSE, 0, new TopicFactors(topics, others), false, "b", 1, null),
            mode, System.nanoTime() + 3_600_000_000_000L, State.PAUSE));
    }

    @Test
    void whatWouldBeWrittenToAPausedTopicIsRefusedByItsName() throws IOException {
        fence(State.OPEN, false);
        publish(Map.of("orders", 0.0), 1, Mode.ENFORCE);
        assertEquals("kquota: topic orders is on a disk that is too full; producers to it are paused", refusal(ALICE, WRITE));
        Action healthy = TestRequest.writeTo("clicks");
        assertNull(refusal(ALICE, healthy));
        assertNotNull(refusal(ALICE, healthy, WRITE), "any of them suffices");
        assertEquals(2, fence.refusals());
        assertNull(refusal(TestRequest.of(ApiKeys.PRODUCE, "admin"), WRITE));
        assertNull(refusal(TestRequest.of(ApiKeys.FETCH, "alice"), WRITE));
        assertNull(fence.refusal(ALICE, List.of(WRITE), List.of(AuthorizationResult.DENIED)));
        publish(Map.of("orders", 0.0), 1, Mode.OBSERVE);
        assertNull(refusal(ALICE, WRITE));
        publish(Map.of("orders", 1.0), 0, Mode.ENFORCE);
        assertNull(refusal(ALICE, WRITE));
        assertEquals("kquota: producers are paused, because a disk of the cluster is too full", refusal(ALICE, healthy));
        assertNull(refusal(ALICE, TestRequest.writeTo("__consumer_offsets")));
    }

    @Test
    void thresholdsActNextToPausedTopics() throws IOException {
        fence(State.OPEN, true);
        publish(Map.of("orders", 0.0), 1, Mode.ENFORCE);
        assertEquals("kquota: topic over is over its threshold of bytes in", refusal(ALICE, TestRequest.writeTo("over")));
        assertEquals("kquota: topic orders is on a disk that is too full; producers to it are paused", refusal(ALICE, WRITE));
        assertNull(refusal(ALICE, TestRequest.writeTo("clicks")));
        assertEquals(1, fence.refusals());
    }

    private void publishThrottled(Map<String, Double> topics) {
        quotas.decision().publish(EffectiveDecision.decided(new Decision(1, "c", 1, 1, Mode.ENFORCE, State.THROTTLE, 0.1, new TopicFactors(topics, 1), false, "b", 1, List.of()),
            Mode.ENFORCE, System.nanoTime() + 3_600_000_000_000L, State.PAUSE));
    }

    @Test
    void onlyRequestsToThrottledTopicsNeedATurnAndTheirWorstFactorIsNoted() throws IOException {
        fence(State.OPEN, false);
        publishThrottled(Map.of("orders", 0.5, "clicks", 0.2));
        quotas.admission().plan(new Target(0.5, 1e6, 1e6, 0.05, 1, 0), () -> landed, System.nanoTime() - 60_000_000_000L);
        landed = 50_000_000;
        quotas.tags(ClientQuotaType.PRODUCE, TestRequest.of(ApiKeys.PRODUCE, "alice").principal(), TestRequest.of(ApiKeys.PRODUCE, "alice").clientId());
        assertNull(refusal(ALICE, TestRequest.writeTo("healthy")));
        assertEquals(1, factor(), "no topic at stake yet");
        assertEquals("kquota: producers are slowed down, because a disk of the cluster is filling; this request has to wait",
            refusal(ALICE, TestRequest.writeTo("healthy"), WRITE));
        assertEquals(0.5, factor());
        assertNotNull(refusal(ALICE, WRITE, TestRequest.writeTo("clicks")));
        assertEquals(0.2, factor());
        TestRequest bob = TestRequest.of(ApiKeys.PRODUCE, "bob");
        quotas.tags(ClientQuotaType.PRODUCE, bob.principal(), bob.clientId());
        assertNotNull(refusal(bob, TestRequest.writeTo("clicks"), WRITE));
        assertEquals(2, quotas.tagSets(ClientQuotaType.PRODUCE).all().stream().filter(tagSet -> tagSet.factor(0) == 0.2).count(), "whichever topic comes last");
        publish(Map.of("orders", 0.0), 1, Mode.ENFORCE);
        assertNotNull(refusal(ALICE, WRITE));
        assertEquals(0, factor());
    }

    private double factor() {
        return quotas.tagSets(ClientQuotaType.PRODUCE).all().stream().mapToDouble(tagSet -> tagSet.factor(0)).min().orElse(1);
    }

    /** A request is refused if and only if it would write to a topic of clients with a factor of 0. */
    @Test
    void anyRequestIsRefusedIfOneOfItsTopicsIsPausedAndOnlyThen() throws IOException {
        fence(State.OPEN, false);
        Random random = new Random(3);
        for (int i = 0; i < 2_000; i++) {
            Map<String, Double> topics = new HashMap<>();
            for (int topic = random.nextInt(5); topic > 0; topic--) {
                topics.put("t" + random.nextInt(6), (double) random.nextInt(2));
            }
            double others = random.nextInt(8) == 0 ? 0 : 1;
            publish(topics, others, Mode.ENFORCE);
            List<Action> actions = new ArrayList<>();
            List<AuthorizationResult> results = new ArrayList<>();
            boolean expected = false;
            for (int action = random.nextInt(5); action > 0; action--) {
                String topic = random.nextInt(8) == 0 ? "__consumer_offsets" : "t" + random.nextInt(6);
                actions.add(TestRequest.writeTo(topic));
                results.add(random.nextInt(6) == 0 ? AuthorizationResult.DENIED : AuthorizationResult.ALLOWED);
                expected |= results.get(results.size() - 1) == AuthorizationResult.ALLOWED && topic.startsWith("t") && topics.getOrDefault(topic, others) == 0;
            }
            assertEquals(expected, fence.refusal(ALICE, actions, results) != null, topics + ", others " + others + ": " + actions);
        }
    }

    private List<String> topics() {
        return quotas.tagSets(ClientQuotaType.PRODUCE).all().stream().flatMap(tagSet -> tagSet.topics(0).stream()).sorted().toList();
    }

    @Test
    void whoWritesToWhichTopicIsNotedWhileProducersWouldBeHeldAlsoIfItIsOnlyObserved() throws IOException {
        fence(State.OPEN, false);
        quotas.tags(ClientQuotaType.PRODUCE, ALICE.principal(), ALICE.clientId());
        Action clicks = TestRequest.writeTo("clicks");
        assertNull(refusal(ALICE, WRITE));
        assertEquals(List.of(), topics(), "in OPEN a request pays nothing for it");
        publish(Map.of("orders", 0.0), 1, Mode.OBSERVE);
        assertNull(refusal(ALICE, WRITE, clicks, TestRequest.writeTo("__consumer_offsets")));
        assertEquals(List.of("clicks", "orders"), topics());
        publish(Map.of("orders", 0.0), 1, Mode.ENFORCE);
        Action payments = TestRequest.writeTo("payments");
        assertNull(fence.refusal(ALICE, List.of(payments), List.of(AuthorizationResult.DENIED)));
        assertNull(refusal(TestRequest.of(ApiKeys.FETCH, "alice"), payments));
        assertNull(refusal(TestRequest.of(ApiKeys.PRODUCE, "admin"), payments), "an exempt principal is never held");
        assertEquals(List.of("clicks", "orders"), topics());
        quotas.decision().publish(decided(State.PAUSE));
        assertNotNull(refusal(ALICE, payments));
        assertEquals(List.of("clicks", "orders", "payments"), topics(), "a request that is refused would have written");
    }

    @Test
    void topicsAreNotedOfAKnownClientThatTheMemoHasForgotten() throws IOException {
        fence(State.PAUSE, false);
        assertNotNull(refusal(ALICE, WRITE));
        assertEquals(List.of(), topics(), "no client gets a new tag set in PAUSE");
        fence(State.OPEN, false);
        quotas.tags(ClientQuotaType.PRODUCE, ALICE.principal(), ALICE.clientId());
        quotas.configure(ExemptPrincipals.parse("User:admin"), groups(), type -> StaticQuotas.NONE);
        fence(State.PAUSE, false);
        assertNotNull(refusal(ALICE, WRITE));
        assertEquals(List.of("orders"), topics());
    }

    @Test
    void itIsReliableWhileItIsInstalledAndHasHadNoFaultLately() throws IOException {
        fence(State.OPEN, false);
        assertFalse(fence.installed() || fence.reliable());
        fence.install();
        fence.install();
        assertTrue(fence.installed() && fence.reliable());
        fence.remove();
        assertTrue(fence.installed());
        fence.fault(new IllegalStateException("an injected fault"));
        assertTrue(fence.installed());
        assertFalse(fence.reliable());
        assertEquals(1, errors.tally(Errors.Kind.FENCE).count());
        assertEquals(1, faults.get(), "others learn of it");
        fence.remove();
        assertFalse(fence.installed());
    }
}
