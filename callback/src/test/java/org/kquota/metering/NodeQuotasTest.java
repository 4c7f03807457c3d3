package org.kquota.metering;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.kquota.admission.Target;
import org.kquota.decision.Decision;
import org.kquota.decision.DecisionInForce;
import org.kquota.decision.EffectiveDecision;
import org.kquota.decision.Mode;
import org.kquota.decision.State;
import org.kquota.decision.TopicFactors;
import org.kquota.group.Groups;
import org.kquota.quota.ExemptPrincipals;
import org.kquota.quota.StaticQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.Tags;

import java.util.List;
import java.util.Map;

/** The answers to request threads in THROTTLE and PAUSE. */
class NodeQuotasTest {
    private static final ClientQuotaType PRODUCE = ClientQuotaType.PRODUCE;
    private static final KafkaPrincipal ALICE = new KafkaPrincipal("User", "alice");
    private NodeQuotas quotas;

    private record Part(ClientQuotaEntity.ConfigEntityType entityType, String name) implements ClientQuotaEntity.ConfigEntity {
    }

    @BeforeEach
    void someClientsAreKnown() {
        quotas = new NodeQuotas(ExemptPrincipals.parse("User:admin"), Groups.NONE, type -> StaticQuotas.NONE, 3, new DecisionInForce(decided(State.OPEN, 1, Mode.ENFORCE)));
        quotas.tags(PRODUCE, ALICE, "known");
        quotas.tags(PRODUCE, ALICE, "idle");
        TagSet known = quotas.tagSets(PRODUCE).find("", "known");
        known.hasBaseline(true);
        known.limit(5000);
        quotas.newcomers().limit(700);
        quotas.paused().limit(300);
    }

    private static EffectiveDecision decided(State state, double factor, Mode mode) {
        Decision decision = new Decision(1, "c", 1, 1, mode, state, factor, false, "b", 1);
        return EffectiveDecision.decided(decision, mode, System.nanoTime() + 60_000_000_000L, State.PAUSE);
    }

    private Double limitOf(String clientId) {
        return quotas.limit(PRODUCE, quotas.tags(PRODUCE, ALICE, clientId));
    }

    @ParameterizedTest
    @EnumSource(State.class)
    void anAgentHasItsQuotaOfProducingInEveryStateAndNoOther(State state) {
        KafkaPrincipal agent = new KafkaPrincipal("User", "agent");
        quotas.configure(ExemptPrincipals.parse("User:admin;User:agent").withAgents("User:agent", 4000), Groups.NONE, type -> StaticQuotas.NONE);
        quotas.decision().publish(decided(state, state == State.OPEN ? 1 : 0.5, Mode.ENFORCE));
        Map<String, String> tags = quotas.tags(PRODUCE, agent, "any");
        assertEquals(Tags.agent("agent"), tags);
        assertEquals(4000, quotas.limit(PRODUCE, tags));
        assertNull(quotas.limit(ClientQuotaType.FETCH, quotas.tags(ClientQuotaType.FETCH, agent, "any")));
        assertNull(quotas.limit(ClientQuotaType.REQUEST, quotas.tags(ClientQuotaType.REQUEST, agent, "any")));
        assertNull(quotas.limit(PRODUCE, quotas.tags(PRODUCE, new KafkaPrincipal("User", "admin"), "any")));
        assertEquals(List.of("User:admin", "User:agent"), quotas.exemptSeen().stream().map(seen -> seen.principal()).toList());
        quotas.configure(ExemptPrincipals.parse("User:admin;User:agent"), Groups.NONE, type -> StaticQuotas.NONE);
        assertNull(quotas.limit(PRODUCE, tags), "of a broker's sensor that is left");
    }

    @Test
    void inThrottleWhoHasABaselineKeepsItsTags() {
        quotas.decision().publish(decided(State.THROTTLE, 0.5, Mode.ENFORCE));
        assertEquals(Tags.of("", "known"), quotas.tags(PRODUCE, ALICE, "known"));
        assertEquals(5000, limitOf("known"));
    }

    /** No client is delayed but by its own quota. One that wants no answers (acks=0) has its turns like the others: the broker never asks for its request quota. */
    @Test
    void whereRequestsAreAdmittedEachClientHasItsOwnTagsAndTakesItsTurns() {
        for (int request = 0; request < 5; request++) {
            quotas.tags(PRODUCE, ALICE, "known");
        }
        quotas.decision().publish(decided(State.THROTTLE, 0.5, Mode.ENFORCE));
        quotas.admission().plan(new Target(0.5, 0, 1e6, 0.05, 1, 0), () -> 0, 0);
        for (String clientId : List.of("known", "idle", "new")) {
            assertEquals(Tags.of("", clientId), quotas.tags(PRODUCE, ALICE, clientId));
            assertNotNull(quotas.admitted(ALICE, clientId, 0.5));
        }
        assertNull(quotas.admitted(new KafkaPrincipal("User", "admin"), "any", 0.5), "an exempt principal is not held");
        quotas.decision().publish(EffectiveDecision.decided(new Decision(1, "c", 1, 1, Mode.ENFORCE, State.THROTTLE, 0.5, new TopicFactors(Map.of("orders", 0.5), 1),
            false, "b", 1, null), Mode.ENFORCE, System.nanoTime() + 60_000_000_000L, State.PAUSE));
        quotas.admission().plan(new Target(0.5, 0, 1e6, 0.05, 1, 0), () -> 0, 0);
        assertEquals(Tags.of("", "idle"), quotas.tags(PRODUCE, ALICE, "idle"), "by topic, too");
    }

    @Test
    void inThrottleTheOthersShareAPool() {
        quotas.decision().publish(decided(State.THROTTLE, 0.5, Mode.ENFORCE));
        assertEquals(Tags.NEWCOMERS, quotas.tags(PRODUCE, ALICE, "idle"));
        assertEquals(Tags.NEWCOMERS, quotas.tags(PRODUCE, ALICE, "new"));
        assertEquals(700, limitOf("new"));
    }

    @Test
    @Tag("B4")
    void inThrottleAQuotaBelowTheLimitStays() {
        quotas.stock(PRODUCE).update(() -> List.of(new Part(ClientQuotaEntity.ConfigEntityType.CLIENT_ID, "known")), 2000);
        quotas.stock(PRODUCE).update(() -> List.of(new Part(ClientQuotaEntity.ConfigEntityType.CLIENT_ID, "new")), 900);
        quotas.decision().publish(decided(State.THROTTLE, 0.5, Mode.ENFORCE));
        assertEquals(2000, limitOf("known"));
        assertEquals(Tags.of("", "new"), quotas.tags(PRODUCE, ALICE, "new"), "or its quota would not hold");
        assertEquals(900, limitOf("new"));
    }

    @Test
    void inPauseAllClientsShareOnePool() {
        quotas.decision().publish(decided(State.PAUSE, 0, Mode.ENFORCE));
        for (String clientId : List.of("known", "idle", "new")) {
            assertEquals(Tags.PAUSED, quotas.tags(PRODUCE, ALICE, clientId));
            assertEquals(300, limitOf(clientId));
        }
    }

    @Test
    void inPauseNoNewClientGetsATagSet() {
        quotas.decision().publish(decided(State.PAUSE, 0, Mode.ENFORCE));
        int before = quotas.tagSetCount();
        quotas.tags(PRODUCE, ALICE, "new");
        assertEquals(before, quotas.tagSetCount());
    }

    @Test
    void observingHoldsNoProducer() {
        for (State state : List.of(State.THROTTLE, State.PAUSE)) {
            quotas.decision().publish(decided(state, state == State.PAUSE ? 0 : 0.5, Mode.OBSERVE));
            assertEquals(Tags.of("", "new"), quotas.tags(PRODUCE, ALICE, "new"));
            assertNull(limitOf("known"));
        }
    }

    @ParameterizedTest
    @EnumSource(ClientQuotaType.class)
    void theSharedTagSetBeyondTheBoundNeverGetsADefaultUsersQuota(ClientQuotaType type) {
        for (String clientId : List.of("known", "idle", "third")) {
            assertEquals(Tags.of("", clientId), quotas.tags(type, ALICE, clientId));
        }
        Map<String, String> tags = quotas.tags(type, ALICE, "fourth");
        assertEquals(Tags.OVERFLOW, tags);
        quotas.stock(type).update(() -> List.of(new Part(ClientQuotaEntity.ConfigEntityType.DEFAULT_USER, "")), 10);
        assertNull(quotas.limit(type, tags));
        assertEquals(10, quotas.limit(type, Tags.of("bob", "")));
    }

    /** A default quota gives one to every client id that anybody invents. */
    @Test
    void inThrottleWhoCameWithoutABaselineIsForgottenLikeOthers() {
        quotas.stock(PRODUCE).update(() -> List.of(new Part(ClientQuotaEntity.ConfigEntityType.DEFAULT_CLIENT_ID, "")), 1e6);
        quotas.decision().publish(decided(State.THROTTLE, 0.5, Mode.ENFORCE));
        int seconds = 0;
        for (int i = 0; i < 10_000; i++) {
            seconds += 10;
            quotas.nowSeconds(seconds);
            assertEquals(Tags.of("", "invented-" + i), quotas.tags(PRODUCE, ALICE, "invented-" + i));
            if (seconds % 60 == 0) {
                quotas.forgetUnused();
            }
        }
        assertTrue(quotas.tagSetCount() < 500, "tag sets: " + quotas.tagSetCount());
        assertNotNull(quotas.tagSets(PRODUCE).find("", "known"), "its earlier rate is needed until THROTTLE ends");
    }

    @Test
    void baselinesOutliveAPauseHoweverLong() {
        quotas.decision().publish(decided(State.PAUSE, 0, Mode.ENFORCE));
        quotas.nowSeconds(100_000);
        quotas.forgetUnused();
        assertEquals(2, quotas.tagSets(PRODUCE).size());
        quotas.decision().publish(decided(State.OPEN, 1, Mode.ENFORCE));
        quotas.forgetUnused();
        assertEquals(0, quotas.tagSets(PRODUCE).size());
    }
}
