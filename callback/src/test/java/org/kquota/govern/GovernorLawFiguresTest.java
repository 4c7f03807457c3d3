package org.kquota.govern;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The law's formulas in worked figures; what they promise for any figures is in {@link GovernorLawTest}. */
class GovernorLawFiguresTest {
    private static final double EXACT = 1e-9;

    /** With B = 2,000 bytes in a window of 10 s. */
    @ParameterizedTest
    @CsvSource({
        // target, S, D, surprise, its D, limit
        "1000, 100, 2, 100, 5, 1000",
        "0, 100, 2, 0, 5, 175",
        "0, 500, 2, 0, 5, 250",
        "0, 100, 2, 500, 5, 175",
        "0, 100, 2, 1300, 5, 260",
        "0, 100, 2, 3000, 5, 600"})
    void aLimitIsTheTargetOrWhatKeepsMutesShort(double target, double arrival, double mute, double surprise, double surpriseMute, double limit) {
        assertEquals(limit, GovernorLaw.limit(target, 200, 10, new GovernorLaw.Bounds(arrival, mute, surprise, surpriseMute)), EXACT);
    }

    @ParameterizedTest
    @CsvSource({"2000, 100, 10, 10", "1001, 100, 10, 0.01", "1000, 100, 10, 0", "500, 100, 10, 0"})
    void aMuteIsThatOfKip13(double bytesInWindow, double limit, double window, double seconds) {
        assertEquals(seconds, GovernorLaw.mute(bytesInWindow, limit, window), EXACT);
    }

    @Test
    void mutesAreExactIfTheyBeginAtOnceAndNoSurpriseNeedsAHigherLimit() {
        assertTrue(new GovernorLaw.Bounds(100, 2, 100, 2).areExact(2000, 10), "as much is expected as may come");
        assertFalse(new GovernorLaw.Bounds(100, 2, 101, 2).areExact(2000, 10), "a surprise needs a higher limit");
        assertTrue(new GovernorLaw.Bounds(100, 2, 500, 5).areExact(2000, 10), "but it may mute for longer");
        assertFalse(new GovernorLaw.Bounds(100, 2, 100, 2).areExact(500, 10), "the limit of 50 bytes per second takes all that is in the window");
        assertTrue(new GovernorLaw.Bounds(100, 2, 100, 2).areExact(501, 10), "a byte more");
        assertFalse(new GovernorLaw.Bounds(100, 2, 100, 2).areExact(0, 10));
    }

    @ParameterizedTest
    @CsvSource({
        // arrival, round, target, min, max, D
        "100, 0, 50, 1, 10, 4", "0, 200, 100, 1, 10, 3", "100, 200, 100, 1, 10, 3", "200, 200, 100, 1, 10, 4",
        "1, 0, 100, 1, 10, 1", "1000, 0, 1, 1, 10, 10", "0, 0, 0, 1, 10, 10", "5, 0, -1, 1, 10, 10", "1, 0, 100, 5, 3, 5"})
    void dInThrottleIsTwoArrivalsOrARoundAndAHalf(double arrival, double round, double target, double min, double max, double seconds) {
        assertEquals(seconds, GovernorLaw.throttleMuteSeconds(arrival, round, target, min, max), EXACT);
    }

    @ParameterizedTest
    @CsvSource({"0, 1, 10, 1", "8, 1, 10, 4", "3600, 1, 10, 10", "3600, 5, 3, 5"})
    void dInPauseIsHalfOfWhatItHasLasted(double elapsed, double min, double max, double seconds) {
        assertEquals(seconds, GovernorLaw.pauseMuteSeconds(elapsed, min, max), EXACT);
    }

    @ParameterizedTest
    @CsvSource({"110, 110, 10, 5, 100", "60, 120, 10, 5, 50", "90, 9000, 10, 5, 60", "100, 0, 10, 5, 100", "0, 0, 10, 5, 0", "0, 100, 10, 5, 0"})
    void aLimitForMutesLeavesRoomForThem(double target, double round, double window, double max, double limit) {
        assertEquals(limit, GovernorLaw.limitForMutes(target, round, window, max), EXACT);
    }

    @Test
    void aTargetIsTheFactorsShareOfTheSmallerOfQuotaAndBaseline() {
        assertEquals(4, GovernorLaw.target(0.5, 10, 8));
        assertEquals(3, GovernorLaw.target(0.5, 6, Double.POSITIVE_INFINITY));
    }

    @ParameterizedTest
    @CsvSource({
        // total, apart, pooled, min ratio
        "1000, 300, 100, 0.1, 200", "1000, 480, 300, 0.1, 150", "1000, 480, 50, 0.1, 50", "1000, 600, 0, 0, 0"})
    void thePoolGetsWhatIsLeftAndAtLeastItsShare(double total, double apart, double pooled, double minRatio, double target) {
        assertEquals(target, GovernorLaw.poolTarget(0.5, total, apart, pooled, minRatio), EXACT);
    }

    @Test
    void anInfiniteLimitMovesOnlyToAFiniteOne() {
        assertFalse(GovernorLaw.hasMoved(5, 5, 0));
        assertTrue(GovernorLaw.hasMoved(5, 6, 0));
        assertTrue(GovernorLaw.hasMoved(100, 89, 0.1));
        assertFalse(GovernorLaw.hasMoved(100, 90, 0.1));
    }
}
