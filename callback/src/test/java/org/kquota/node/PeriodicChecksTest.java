package org.kquota.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;
import org.kquota.decision.Decision;
import org.kquota.decision.DecisionInForce;
import org.kquota.decision.EffectiveDecision;
import org.kquota.decision.Mode;
import org.kquota.decision.State;
import org.kquota.error.Errors;
import org.kquota.group.Groups;
import org.kquota.metering.NodeQuotas;
import org.kquota.quota.ExemptPrincipals;
import org.kquota.quota.StaticQuotas;
import org.kquota.quota.Tags;

import java.util.HashSet;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;

/** The warning that the governor does not see the rates of producers. */
class PeriodicChecksTest {
    private static final ClientQuotaType PRODUCE = ClientQuotaType.PRODUCE;
    private static final KafkaPrincipal ALICE = new KafkaPrincipal("User", "alice");

    private final NodeQuotas quotas = new NodeQuotas(ExemptPrincipals.parse("User:admin"), Groups.NONE, type -> StaticQuotas.NONE, 10,
        new DecisionInForce(decided(State.OPEN)));
    private final Errors errors = new Errors();
    /** The tags that the broker has a rate of. */
    private final Set<Map<String, String>> seen = new HashSet<>();
    private final PeriodicChecks housekeeping = new PeriodicChecks(quotas,
        tags -> seen.contains(tags) ? OptionalDouble.of(1e6) : OptionalDouble.empty(), errors, () -> null);

    private static EffectiveDecision decided(State state) {
        Decision decision = new Decision(1, "c", 1, 1, Mode.ENFORCE, state, 0.5, false, "b", 1);
        return EffectiveDecision.decided(decision, Mode.ENFORCE, System.nanoTime() + 3_600_000_000_000L, State.PAUSE);
    }

    /** A request of this client, which the broker meters by the tags that it is given. */
    private void request(String clientId) {
        seen.add(quotas.tags(PRODUCE, ALICE, clientId));
    }

    /** The seconds from one to another go by; these clients go on producing, and the broker shows their rates or does not. */
    private void produce(int fromSeconds, int toSeconds, boolean shown, String... clientIds) {
        for (int second = fromSeconds; second < toSeconds; second++) {
            quotas.nowSeconds(second);
            for (String clientId : clientIds) {
                request(clientId);
            }
            if (!shown) {
                seen.clear();
            }
            housekeeping.keep(second);
        }
    }

    private long warnings() {
        return errors.tally(Errors.Kind.GOVERNOR).count();
    }

    @Test
    void ratesThatClientsDoNotHaveOnceTheyAreMeteredAreInvisible() {
        produce(0, 70, false, "app");
        assertEquals(1, warnings());
        assertTrue(errors.tally(Errors.Kind.GOVERNOR).lastMessage().contains("not visible over JMX"));
        produce(70, 130, false, "app");
        assertEquals(2, warnings());
    }

    @Test
    void ratesOfClientsThatTheBrokerShowsAreVisible() {
        produce(0, 200, true, "app", "other");
        assertEquals(0, warnings());
    }

    @Test
    void aNewcomerInThrottleIsMeteredWithOthersAndHasNoRateOfItsOwn() {
        produce(0, 10, true, "known");
        quotas.tagSets(PRODUCE).find("", "known").hasBaseline(true);
        quotas.decision().publish(decided(State.THROTTLE));
        produce(10, 150, true, "known", "newcomer");
        assertEquals(Tags.NEWCOMERS, quotas.tags(PRODUCE, ALICE, "newcomer"));
        assertEquals(0, warnings());
        quotas.decision().publish(decided(State.OPEN));
        quotas.nowSeconds(180);
        housekeeping.keep(180);
        produce(181, 200, true, "known");
        assertEquals(0, warnings(), "it has not produced in OPEN yet");
    }

    @Test
    void aRequestThatIsNotMeteredYetHasNoRateYet() {
        quotas.nowSeconds(60);
        Map<String, String> tags = quotas.tags(PRODUCE, ALICE, "new");
        housekeeping.keep(60);
        seen.add(tags);
        produce(61, 100, true, "new");
        assertEquals(0, warnings());
    }
}
