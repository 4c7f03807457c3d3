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
}
