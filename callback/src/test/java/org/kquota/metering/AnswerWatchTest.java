package org.kquota.metering;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;
import org.kquota.decision.Decision;
import org.kquota.decision.DecisionInForce;
import org.kquota.decision.EffectiveDecision;
import org.kquota.decision.Mode;
import org.kquota.decision.State;
import org.kquota.group.GroupsBuilder;
import org.kquota.quota.ExemptPrincipals;
import org.kquota.quota.StaticQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.Tags;

import java.util.Map;

/** Which clients want no answers, from the tags that the broker asks for; and which clients are for admission to hold. */
class AnswerWatchTest {
    private static final KafkaPrincipal ALICE = new KafkaPrincipal("User", "alice");
    private static final KafkaPrincipal ADMIN = new KafkaPrincipal("User", "admin");
    private final NodeQuotas quotas = new NodeQuotas(ExemptPrincipals.parse("User:admin"), new GroupsBuilder().build(), type -> StaticQuotas.NONE, 10,
        new DecisionInForce(decided(State.OPEN)));

    private static EffectiveDecision decided(State state) {
        double factor = state == State.OPEN ? 1 : 0.5;
        return EffectiveDecision.decided(new Decision(1, "c", 1, 1, Mode.ENFORCE, state, factor, false, "b", 1), Mode.ENFORCE,
            System.nanoTime() + 3_600_000_000_000L, State.PAUSE);
    }

    /** As the broker asks for the tags of a produce request that wants an answer. */
    private Map<String, String> answered(String clientId) {
        Map<String, String> tags = quotas.tags(ClientQuotaType.PRODUCE, ALICE, clientId);
        quotas.tags(ClientQuotaType.REQUEST, ALICE, clientId);
        return tags;
    }

    private Map<String, String> unanswered(String clientId) {
        return quotas.tags(ClientQuotaType.PRODUCE, ALICE, clientId);
    }

    private TagSet of(String clientId) {
        return quotas.tagSets(ClientQuotaType.PRODUCE).find("", clientId);
    }

    @Test
    void whoIsNeverAskedForTheRequestQuotaWantsNoAnswers() {
        for (int i = 0; i < 10; i++) {
            answered("all");
            unanswered("none");
        }
        answered("all");
        assertFalse(of("all").unanswered());
        assertTrue(of("none").unanswered());
        assertNotNull(quotas.admitted(ALICE, "all", 0.5));
        assertNull(quotas.admitted(ALICE, "none", 0.5), "a refusal would disconnect it");
        assertNull(quotas.admitted(ADMIN, "all", 0.5), "it is exempt");
    }

    @Test
    void oneThatWasNotAnsweredProvesNothing() {
        unanswered("app");
        unanswered("app");
        answered("app");
        unanswered("app");
        unanswered("app");
        answered("other");
        assertFalse(of("app").unanswered());
    }

    @Test
    void questionsOfOthersBetweenSettleItToo() {
        for (int i = 0; i < 3; i++) {
            unanswered("app");
            quotas.tags(i == 0 ? ClientQuotaType.FETCH : ClientQuotaType.REQUEST, ALICE, i == 0 ? "app" : "other");
        }
        assertTrue(of("app").unanswered());
    }

    /** On another thread: the broker's threads handle requests side by side. */
    @Test
    void eachThreadIsWatchedByItself() throws InterruptedException {
        for (int i = 0; i < 5; i++) {
            quotas.tags(ClientQuotaType.PRODUCE, ALICE, "app");
            Thread other = new Thread(() -> answered("other"));
            other.start();
            other.join();
            quotas.tags(ClientQuotaType.REQUEST, ALICE, "app");
        }
        assertFalse(of("app").unanswered());
        assertFalse(of("other").unanswered());
    }

    @Test
    void onceItIsKnownNothingIsWatchedUntilAdmissionHoldsProducers() {
        answered("app");
        quotas.recount();
        for (int i = 0; i < 5; i++) {
            unanswered("app");
        }
        assertFalse(of("app").unanswered(), "it is settled");
        quotas.admitting(true);
        for (int i = 0; i < 5; i++) {
            unanswered("app");
        }
        assertTrue(of("app").unanswered(), "it has come again with another configuration");
    }

    @Test
    void aRestBetweenTwoQuestionsForgetsThem() {
        for (int i = 0; i < 5; i++) {
            unanswered("app");
            quotas.recount();
        }
        assertFalse(of("app").unanswered());
    }

    @Test
    void inThrottleByAdmissionClientsKeepTheirOwnTagsButForThoseWithoutAnswers() {
        for (int i = 0; i < 4; i++) {
            unanswered("none");
        }
        answered("app");
        quotas.decision().publish(decided(State.THROTTLE));
        assertEquals(Tags.NEWCOMERS, answered("app"), "by delays");
        quotas.admission().plan(new org.kquota.admission.Target(0.5, 0, 1e6, 0.05, 1, 0), () -> 0, 0);
        assertEquals(Tags.of("", "app"), answered("app"));
        assertEquals(Tags.of("", "new"), answered("new"));
        assertEquals(Tags.NEWCOMERS, unanswered("none"));
        assertNull(quotas.limit(ClientQuotaType.PRODUCE, Tags.of("", "app")));
        quotas.admission().end();
        assertEquals(Tags.NEWCOMERS, answered("app"));
    }

    @Test
    void exemptPrincipalsThatWereSeenAreKnownByTheirTags() {
        quotas.tags(ClientQuotaType.PRODUCE, ADMIN, "app");
        assertEquals(java.util.List.of(Tags.exempt("admin")), quotas.exemptTags());
    }
}
