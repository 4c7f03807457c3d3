package org.kquota.decision;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.List;
import java.util.Map;

class EffectiveDecisionTest {
    private static final long DEADLINE = 1_000;

    private static EffectiveDecision decided(State state, double factor, boolean fallback, Mode mode) {
        return EffectiveDecision.decided(new Decision(1, "c", 1, 7, Mode.ENFORCE, state, factor, fallback, "b", 1), mode, DEADLINE, State.PAUSE);
    }

    @Test
    void aDecisionHoldsUntilTheEndOfItsLeaseAndThenTheActionForALostOne() {
        EffectiveDecision decision = decided(State.THROTTLE, 0.5, false, Mode.ENFORCE);
        assertSame(decision, decision.at(DEADLINE - 1));
        assertSame(decision, decision.at(DEADLINE));
        EffectiveDecision after = decision.at(DEADLINE + 1);
        assertEquals(EffectiveDecision.lost(State.PAUSE, Mode.ENFORCE, "the decision's lease ran out"), after);
        assertSame(after, after.at(Long.MAX_VALUE));
        assertSame(decision, decision.at(DEADLINE + Long.MIN_VALUE), "System.nanoTime() may overflow");
    }

    @Test
    void theFactorOfALostDecisionIsThatOfItsAction() {
        assertEquals(1, EffectiveDecision.lost(State.OPEN, Mode.ENFORCE, "missing").factor());
        assertEquals(0, EffectiveDecision.lost(State.PAUSE, Mode.ENFORCE, "missing").factor());
        assertNull(EffectiveDecision.lost(State.PAUSE, Mode.ENFORCE, "missing").decision());
    }

    @Test
    void anObservedDecisionHoldsNoProducer() {
        EffectiveDecision enforced = decided(State.PAUSE, 0, false, Mode.ENFORCE);
        assertEquals(State.PAUSE, enforced.enforced());
        EffectiveDecision observed = enforced.observed();
        assertEquals(decided(State.PAUSE, 0, false, Mode.OBSERVE), observed);
        assertNotSame(enforced, observed);
        assertSame(observed, observed.observed());
        assertEquals(State.OPEN, observed.enforced());
        assertEquals(State.OPEN, observed.at(DEADLINE + 1).enforced(), "after the lease, too");
        EffectiveDecision lost = EffectiveDecision.lost(State.PAUSE, Mode.ENFORCE, "missing");
        assertEquals(State.OPEN, lost.observed().enforced());
        assertNull(lost.observed().afterLease());
    }

    @Test
    void theSituationIsStateModeAndWhetherThereIsADecision() {
        EffectiveDecision decision = decided(State.PAUSE, 0, false, Mode.ENFORCE);
        assertTrue(decision.sameSituation(decided(State.PAUSE, 0, true, Mode.ENFORCE)));
        assertFalse(decision.sameSituation(decided(State.OPEN, 1, false, Mode.ENFORCE)));
        assertFalse(decision.sameSituation(decision.observed()));
        assertFalse(decision.sameSituation(decision.afterLease()));
        assertTrue(decision.afterLease().sameSituation(EffectiveDecision.lost(State.PAUSE, Mode.ENFORCE, "missing")));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "OPEN|1|false|OBSERVE|OPEN: producers are not held (decision 7)",
        "THROTTLE|0.25|false|ENFORCE|THROTTLE: producers are slowed down to 25.0 % (decision 7)",
        "PAUSE|0|true|OBSERVE|PAUSE: producers are stopped, but only observed (decision 7, a fallback for lack of data)",
    })
    void itIsOneSentence(State state, double factor, boolean fallback, Mode mode, String sentence) {
        assertEquals(sentence, decided(state, factor, fallback, mode).sentence());
    }

    @Test
    void theSentenceOfALostDecisionHasTheReason() {
        assertEquals("PAUSE: producers are stopped (the decision is lost: it is missing)",
            EffectiveDecision.lost(State.PAUSE, Mode.ENFORCE, "it is missing").sentence());
    }

    private static EffectiveDecision byTopic(State state, double factor, Map<String, Double> topics, double others) {
        return EffectiveDecision.decided(new Decision(1, "c", 1, 7, Mode.ENFORCE, state, factor, new TopicFactors(topics, others), false, "b", 1, null), Mode.ENFORCE,
            DEADLINE, State.PAUSE);
    }

    @Test
    void aDecisionByTopicHasAFactorForEachTopicAndALostOneIsForAllProducers() {
        EffectiveDecision decision = byTopic(State.PAUSE, 0, Map.of("orders", 0.0, "clicks", 0.3), 1);
        assertEquals(Scope.TOPICS, decision.scope());
        assertEquals(2, decision.topicsAtStake());
        assertEquals(0, decision.forCluster().topicsAtStake());
        assertTrue(decision.names("orders") && !decision.names("logs") && !decision.forCluster().names("orders"));
        assertEquals(0, decision.factor("orders"));
        assertEquals(1, decision.factor("logs"));
        assertEquals(Scope.TOPICS, decision.observed().scope());
        assertEquals(Scope.CLUSTER, decision.at(DEADLINE + 1).scope());
        assertEquals(0, decision.at(DEADLINE + 1).factor("logs"), "the end of the lease pauses all");
        assertEquals(0.5, decided(State.THROTTLE, 0.5, false, Mode.ENFORCE).factor("logs"));
    }

    @Test
    void forTheClusterItIsTheWorstOfAllTopics() {
        EffectiveDecision decision = byTopic(State.PAUSE, 0, Map.of("orders", 0.0, "clicks", 0.3), 1).forCluster();
        assertEquals(Scope.CLUSTER, decision.scope());
        assertEquals(0, decision.factor("logs"));
        assertEquals(State.PAUSE, decision.governed());
        assertSame(decision, decision.forCluster());
        assertEquals(State.PAUSE, decision.at(DEADLINE + 1).state());
        Decision byTopic = new Decision(1, "c", 1, 7, Mode.ENFORCE, State.PAUSE, 0, new TopicFactors(Map.of("orders", 0.0), 1), false, "b", 1, List.of());
        EffectiveDecision kept = EffectiveDecision.decided(byTopic, Mode.ENFORCE, DEADLINE, EffectiveDecision.kept(byTopic, Mode.ENFORCE, 2 * DEADLINE, "late"));
        assertEquals(Scope.TOPICS, kept.at(DEADLINE + 1).scope());
        assertEquals(Scope.CLUSTER, kept.forCluster().at(DEADLINE + 1).scope(), "after its lease, too");
        assertEquals(State.OPEN, EffectiveDecision.decided(byTopic, Mode.ENFORCE, DEADLINE, State.OPEN).forCluster().at(DEADLINE + 1).state());
    }

    @Test
    void theGovernorDelaysOnlyWhereATopicIsThrottled() {
        EffectiveDecision paused = byTopic(State.PAUSE, 0, Map.of("orders", 0.0), 1);
        assertEquals(State.OPEN, paused.governed());
        EffectiveDecision both = byTopic(State.PAUSE, 0, Map.of("orders", 0.0, "clicks", 0.3), 1);
        assertEquals(State.THROTTLE, both.governed());
        assertEquals(0.3, both.governedFactor());
        assertEquals(State.OPEN, both.observed().governed());
        EffectiveDecision all = decided(State.THROTTLE, 0.5, false, Mode.ENFORCE);
        assertEquals(State.THROTTLE, all.governed());
        assertEquals(0.5, all.governedFactor());
    }

    @Test
    void aTopicThatChangesItsStateIsAnotherSituationAndAFactorThatMovesIsNone() {
        EffectiveDecision decision = byTopic(State.PAUSE, 0, Map.of("orders", 0.0, "clicks", 0.3), 1);
        assertTrue(decision.sameSituation(byTopic(State.PAUSE, 0, Map.of("orders", 0.0, "clicks", 0.2), 1)));
        assertFalse(decision.sameSituation(byTopic(State.PAUSE, 0, Map.of("orders", 0.0), 1)));
        assertFalse(decision.sameSituation(decision.forCluster()));
        assertFalse(decision.forCluster().sameSituation(decision));
    }

    @Test
    void theSentenceSaysForHowManyTopics() {
        assertEquals("PAUSE for 1 topic: producers to them are held (decision 7)", byTopic(State.PAUSE, 0, Map.of("orders", 0.0), 1).sentence());
        assertEquals("PAUSE for 2 topics, THROTTLE for 1 topic down to 30.0 %: producers to them are held (decision 7)",
            byTopic(State.PAUSE, 0, Map.of("a", 0.0, "b", 0.0, "c", 0.3, "d", 1.0), 1).sentence());
        assertEquals("PAUSE for 1 topic and all that are not named: producers to them are held (decision 7)",
            byTopic(State.PAUSE, 0, Map.of("a", 0.0), 0).sentence());
        assertEquals("THROTTLE for all that are not named down to 50.0 %: producers to them are held (decision 7)",
            byTopic(State.THROTTLE, 0.5, Map.of(), 0.5).sentence());
        assertEquals("no topic is at stake: producers are not held (decision 7)", byTopic(State.PAUSE, 0, Map.of(), 1).sentence());
    }

    @Test
    void theFloorRaisesAThrottleAndNothingElse() {
        EffectiveDecision throttled = decided(State.THROTTLE, 0.1, false, Mode.ENFORCE);
        assertEquals(0.3, throttled.withFloor(0.3).factor());
        assertEquals(State.THROTTLE, throttled.withFloor(0.3).state());
        assertSame(throttled, throttled.withFloor(0.1));
        assertSame(throttled, throttled.withFloor(0));
        for (State state : List.of(State.OPEN, State.PAUSE)) {
            EffectiveDecision decision = decided(state, state == State.OPEN ? 1 : 0, false, Mode.ENFORCE);
            assertSame(decision, decision.withFloor(0.5));
        }
        EffectiveDecision renewed = EffectiveDecision.decided(throttled.decision(), Mode.ENFORCE, DEADLINE,
            EffectiveDecision.kept(throttled.decision(), Mode.ENFORCE, 2 * DEADLINE, "late")).withFloor(0.3);
        assertEquals(0.3, renewed.at(DEADLINE + 1).factor(), "after its lease, too");
        assertEquals(State.PAUSE, renewed.at(2 * DEADLINE + 1).state());
    }

    @Test
    void theFloorRaisesEachTopicsFactorButThatOfAPause() {
        EffectiveDecision decision = byTopic(State.PAUSE, 0, Map.of("orders", 0.0, "clicks", 0.1, "views", 0.6), 0.2).withFloor(0.3);
        assertEquals(0, decision.factor());
        assertEquals(Map.of("orders", 0.0, "clicks", 0.3, "views", 0.6), decision.topics().named());
        assertEquals(0.3, decision.factor("logs"));
        assertEquals(0.3, decision.governedFactor());
    }
}
