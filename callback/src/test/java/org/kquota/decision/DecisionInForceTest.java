package org.kquota.decision;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import org.junit.jupiter.api.Test;

class DecisionInForceTest {
    private static final long HOUR_NANOS = 3_600_000_000_000L;

    private static EffectiveDecision until(long deadlineNanos) {
        return EffectiveDecision.decided(new Decision(1, "c", 1, 7, Mode.ENFORCE, State.OPEN, 1, false, "b", 1), Mode.ENFORCE, deadlineNanos, State.PAUSE);
    }

    @Test
    void whatWasPublishedLastHolds() {
        EffectiveDecision first = until(System.nanoTime() + HOUR_NANOS);
        DecisionInForce decision = new DecisionInForce(first);
        assertSame(first, decision.now());
        EffectiveDecision next = until(System.nanoTime() + HOUR_NANOS);
        decision.publish(next);
        assertSame(next, decision.now());
        assertSame(next, decision.expireIfDue());
        assertSame(next, decision.published());
        assertNull(decision.expired());
    }

    @Test
    void onlyARequestFindsThatALeaseIsOver() {
        EffectiveDecision over = until(System.nanoTime() - 1);
        DecisionInForce decision = new DecisionInForce(over);
        assertSame(over.afterLease(), decision.now());
        assertNull(decision.expired());
        assertSame(over.afterLease(), decision.expireIfDue());
        assertSame(over.afterLease(), decision.expired());
        assertSame(over, decision.published());
        EffectiveDecision alsoOver = until(System.nanoTime() - 1);
        decision.publish(alsoOver);
        assertSame(over.afterLease(), decision.expired(), "no request has come since");
        assertSame(alsoOver.afterLease(), decision.expireIfDue());
        assertSame(alsoOver.afterLease(), decision.expired());
    }
}
