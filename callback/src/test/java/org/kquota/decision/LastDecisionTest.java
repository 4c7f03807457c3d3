package org.kquota.decision;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.List;
import java.util.Map;

class LastDecisionTest {
    private static final long SECOND = 1_000_000_000L;
    private static final long LEASE_END = 1_000 * SECOND;
    private static final OwnLogDir DATA = new OwnLogDir("/data", 100, 50);
    private static final String REASON = "it is missing";

    private final LastDecision last = new LastDecision();

    private static Decision decision(State state, double factor, TopicFactors topics, List<OwnLogDir> ownLogDirs) {
        return new Decision(1, "c", 1, 7, Mode.ENFORCE, state, factor, topics, false, "b", 1, ownLogDirs);
    }

    private void remember(Decision decision) {
        last.remember(new Verdict(decision, LEASE_END, null));
    }

    @BeforeEach
    void throttled() {
        remember(decision(State.THROTTLE, 0.5, null, List.of(DATA)));
    }

    @Test
    void theLastDecisionHoldsWhileTheOwnDisksHaveRoom() {
        EffectiveDecision kept = last.keep(REASON, Mode.ENFORCE, 1, LEASE_END + SECOND);
        assertEquals(State.THROTTLE, kept.state());
        assertEquals(0.5, kept.factor());
        assertEquals(REASON, kept.kept());
        assertEquals(7, kept.decision().sequence());
        assertNull(kept.lost());
    }

    @Test
    void aLookAtTheDisksCountsForTwoSecondsAndThenThePauseBegins() {
        EffectiveDecision kept = last.keep(REASON, Mode.ENFORCE, 1, LEASE_END);
        assertSame(kept, kept.at(LEASE_END + 2 * SECOND));
        EffectiveDecision after = kept.at(LEASE_END + 2 * SECOND + 1);
        assertEquals(State.PAUSE, after.state());
        assertEquals(REASON, after.lost());
    }

    @Test
    void aRequestThatFindsTheEndOfTheLeaseFirstFindsWhatIsKept() {
        EffectiveDecision kept = last.keep(REASON, Mode.ENFORCE, 1, LEASE_END);
        EffectiveDecision decided = EffectiveDecision.decided(decision(State.THROTTLE, 0.5, null, null), Mode.ENFORCE, LEASE_END, kept);
        assertSame(decided, decided.at(LEASE_END));
        assertSame(kept, decided.at(LEASE_END + 1));
        assertEquals(State.PAUSE, decided.at(LEASE_END + 2 * SECOND + 1).state());
    }

    @Test
    void afterTenMinutesNothingIsKept() {
        EffectiveDecision kept = last.keep(REASON, Mode.ENFORCE, 1, LEASE_END + 599 * SECOND);
        assertSame(kept, kept.at(LEASE_END + 600 * SECOND));
        assertEquals(State.PAUSE, kept.at(LEASE_END + 600 * SECOND + 1).state());
        assertNull(last.keep(REASON, Mode.ENFORCE, 1, LEASE_END + 600 * SECOND));
    }

    @ParameterizedTest
    @CsvSource({"0.7, THROTTLE, 0.5", "0.2, THROTTLE, 0.2", "0, PAUSE, 0"})
    void theOwnDisksMayTighten(double headroom, State state, double factor) {
        EffectiveDecision kept = last.keep(REASON, Mode.ENFORCE, headroom, LEASE_END);
        assertEquals(state, kept.state());
        assertEquals(factor, kept.factor());
    }

    @Test
    void aPauseIsNotReleased() {
        remember(decision(State.PAUSE, 0, null, List.of(DATA)));
        assertEquals(State.PAUSE, last.keep(REASON, Mode.ENFORCE, 1, LEASE_END).state());
    }

    @Test
    void aDecisionByTopicStaysOneUntilAnOwnDiskIsOverItsSoftLimit() {
        TopicFactors topics = new TopicFactors(Map.of("orders", 0.0), 1);
        remember(decision(State.PAUSE, 0, topics, List.of(DATA)));
        assertSame(topics, last.keep(REASON, Mode.ENFORCE, 1, LEASE_END).topics());
        EffectiveDecision tighter = last.keep(REASON, Mode.ENFORCE, 0.9, LEASE_END);
        assertEquals(Scope.CLUSTER, tighter.scope());
        assertEquals(State.PAUSE, tighter.state());
    }

    @Test
    void withoutALookOrWithoutADecisionNothingIsKept() {
        assertNull(last.keep(REASON, Mode.ENFORCE, Double.NaN, LEASE_END));
        remember(decision(State.OPEN, 1, null, null));
        assertNull(last.keep(REASON, Mode.ENFORCE, 1, LEASE_END));
        assertNull(new LastDecision().keep(REASON, Mode.ENFORCE, 1, LEASE_END));
    }

    @Test
    void theDisksAreLookedAtFromShortlyBeforeTheEndOfTheLeaseOnAndForTenMinutes() {
        assertNull(last.watched(false, LEASE_END - 15 * SECOND));
        assertEquals(List.of(DATA), last.watched(false, LEASE_END - 15 * SECOND + 1));
        assertEquals(List.of(DATA), last.watched(true, 0));
        assertEquals(List.of(DATA), last.watched(true, LEASE_END + 600 * SECOND));
        assertNull(last.watched(true, LEASE_END + 600 * SECOND + 1));
        assertNull(new LastDecision().watched(true, LEASE_END));
        assertTrue(last.isLeased(LEASE_END));
        assertFalse(last.isLeased(LEASE_END + 1));
        assertFalse(new LastDecision().isLeased(LEASE_END));
    }

    @ParameterizedTest
    @CsvSource({"1000, 1", "100, 1", "99, 0.98", "75, 0.5", "51, 0.02", "50, 0", "0, 0"})
    void theHeadroomOfALogDirIsWhatIsLeftBetweenItsFigures(long availableBytes, double headroom) {
        assertEquals(headroom, DATA.headroom(availableBytes), 1e-9);
    }

    @Test
    void theFirstByteBeyondTheHardLimitIsNoPause() {
        OwnLogDir large = new OwnLogDir("/data", Long.MAX_VALUE, Long.MAX_VALUE / 2);
        assertEquals(0, large.headroom(Long.MAX_VALUE / 2));
        assertEquals(State.THROTTLE, EffectiveDecision.kept(decision(State.OPEN, 1, null, null), Mode.ENFORCE, 1, REASON)
            .atMost(large.headroom(Long.MAX_VALUE / 2 + 1)).state());
        assertEquals(1, new OwnLogDir("/data", 1, -1).headroom(1));
        assertEquals(0.5, new OwnLogDir("/data", 1, -1).headroom(0));
    }
}
