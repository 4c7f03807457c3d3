package org.kquota.govern;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.Random;

/** The law's promises, over random inputs of any size. */
class GovernorLawTest {
    private static final int CASES = 100_000;
    private final Random random = new Random(42);

    /** From 10^low to 10^high, evenly by magnitude, and now and then 0. */
    private double any(double low, double high) {
        return random.nextInt(50) == 0 ? 0 : Math.pow(10, low + random.nextDouble() * (high - low));
    }

    @Test
    void noMuteExceedsDAsLongAsNoMoreArrivesThanExpected() {
        for (int i = 0; i < CASES; i++) {
            double windowSeconds = 1 + random.nextInt(120);
            double muteSeconds = 0.1 + random.nextDouble() * 60;
            double surpriseMuteSeconds = muteSeconds + random.nextDouble() * 60;
            double inWindow = any(0, 12);
            double expected = any(0, 9);
            double surprise = 1024 + any(0, 9);
            double limit = GovernorLaw.limit(any(0, 11), inWindow / windowSeconds, windowSeconds,
                new GovernorLaw.Bounds(expected, muteSeconds, surprise, surpriseMuteSeconds));
            // The room may be used up before the last request comes.
            double before = Math.max(inWindow, limit * windowSeconds);
            double mute = GovernorLaw.mute(before + expected * random.nextDouble(), limit, windowSeconds);
            assertTrue(mute <= muteSeconds * (1 + 1e-9), "mute " + mute + " > D " + muteSeconds);
            double surprised = GovernorLaw.mute(before + Math.max(surprise, expected) * random.nextDouble(), limit, windowSeconds);
            assertTrue(surprised <= surpriseMuteSeconds * (1 + 1e-9), "mute " + surprised + " > " + surpriseMuteSeconds);
        }
    }

    @Test
    void whoseMutesAreExactIsMutedByTheFirstRequestHoweverSmall() {
        int exact = 0;
        for (int i = 0; i < CASES; i++) {
            double windowSeconds = 1 + random.nextInt(120);
            double inWindow = any(0, 12);
            GovernorLaw.Bounds bounds = new GovernorLaw.Bounds(any(0, 8), 0.1 + random.nextDouble() * 10, any(0, 7), 10 + random.nextDouble() * 60);
            double limit = GovernorLaw.limit(0, inWindow / windowSeconds, windowSeconds, bounds);
            double mute = GovernorLaw.mute(inWindow, limit, windowSeconds);
            if (bounds.areExact(inWindow, windowSeconds)) {
                assertTrue(mute > 0 && mute <= bounds.muteSeconds() * (1 + 1e-9), "mute " + mute);
                exact++;
            }
        }
        assertTrue(exact > CASES / 10, "too few cases: " + exact);
    }

    @Test
    void noLimitIsEverNearZero() {
        for (int i = 0; i < CASES; i++) {
            double windowSeconds = 1 + random.nextInt(120);
            double maxMute = 60;
            double surprise = 1024 + any(0, 9);
            double observed = any(-3, 11);
            double limit = GovernorLaw.limit(any(-9, 11), observed, windowSeconds,
                new GovernorLaw.Bounds(any(0, 9), 0.1 + random.nextDouble() * (maxMute - 0.1), surprise, maxMute));
            assertTrue(limit >= (observed * windowSeconds + surprise) / (windowSeconds + maxMute) && limit >= surprise / maxMute);
        }
    }

    @Test
    void aSmallerFactorNeverGivesALargerLimit() {
        for (int i = 0; i < CASES; i++) {
            double baseline = any(0, 10);
            double quota = random.nextBoolean() ? Double.POSITIVE_INFINITY : any(0, 10);
            double observed = any(0, 10);
            double arrival = 1024 + any(0, 9);
            double less = random.nextDouble();
            double more = less + (1 - less) * random.nextDouble();
            assertTrue(limitAt(less, baseline, quota, observed, arrival) <= limitAt(more, baseline, quota, observed, arrival));
        }
    }

    private static double limitAt(double factor, double baseline, double quota, double observed, double arrival) {
        double target = GovernorLaw.target(factor, baseline, quota);
        return GovernorLaw.limit(target, observed, 11, new GovernorLaw.Bounds(arrival, GovernorLaw.throttleMuteSeconds(arrival, 0, target, 1, 5), 1_048_576, 5));
    }

    @Test
    void aLimitForMutesGivesTheTargetAndNeverMutesForLongerThanItMay() {
        for (int i = 0; i < CASES; i++) {
            double windowSeconds = 1 + random.nextInt(120);
            double maxSeconds = 1 + random.nextDouble() * 60;
            double target = 1 + any(0, 10);
            double round = any(0, 9);
            double limit = GovernorLaw.limitForMutes(target, round, windowSeconds, maxSeconds);
            double mute = GovernorLaw.mute(target * windowSeconds, limit, windowSeconds);
            assertTrue(limit <= target * (1 + 1e-9) && mute <= maxSeconds * (1 + 1e-6), "mute " + mute);
            assertEquals(Math.min(round, maxSeconds * target), mute * target, 1e-6 * (round + target * windowSeconds), "the bytes of a round");
            assertTrue(GovernorLaw.limitForMutes(target * random.nextDouble(), round, windowSeconds, maxSeconds) <= limit * (1 + 1e-9));
        }
    }

    @Test
    @Tag("F27")
    void noTargetIsEverNegative() {
        for (int i = 0; i < CASES; i++) {
            double factor = random.nextDouble();
            assertTrue(GovernorLaw.target(factor, any(0, 10), any(0, 10)) >= 0);
            assertTrue(GovernorLaw.poolTarget(factor, any(0, 10), any(0, 11), any(0, 10), random.nextDouble()) >= 0);
        }
    }

    @Test
    void dStaysWithinItsBounds() {
        for (int i = 0; i < CASES; i++) {
            double min = 0.1 + random.nextDouble();
            double max = min + random.nextDouble() * 60;
            double throttle = GovernorLaw.throttleMuteSeconds(any(-3, 10), any(-3, 10), any(-3, 10), min, max);
            double pause = GovernorLaw.pauseMuteSeconds(any(-3, 7), min, max);
            assertTrue(throttle >= min && throttle <= max && pause >= min && pause <= max);
        }
    }

    @Test
    @Tag("F28")
    void comingBackFromAPauseTakesAtMostHalfAsLongAsItLasted() {
        assertEquals(1, GovernorLaw.pauseMuteSeconds(0, 1, 10));
        assertEquals(4, GovernorLaw.pauseMuteSeconds(8, 1, 10));
        assertEquals(10, GovernorLaw.pauseMuteSeconds(3600, 1, 10));
    }

    @Test
    void aLimitMovesOnlyBeyondItsRatio() {
        assertFalse(GovernorLaw.hasMoved(1000, 1010, 0.01));
        assertTrue(GovernorLaw.hasMoved(1000, 1010.1, 0.01));
        assertTrue(GovernorLaw.hasMoved(1000, 989, 0.01));
        assertTrue(GovernorLaw.hasMoved(Double.POSITIVE_INFINITY, 1, 0.01));
        assertTrue(GovernorLaw.hasMoved(1, Double.POSITIVE_INFINITY, 0.01));
        assertFalse(GovernorLaw.hasMoved(Double.POSITIVE_INFINITY, Double.POSITIVE_INFINITY, 0.01));
    }

    @Test
    void theFactorsHistoryIsItsAverageOverTheWindow() {
        FactorHistory history = new FactorHistory(10);
        assertEquals(1, history.shareBefore(10), 1e-9);
        history.add(0.5, 4);
        assertEquals(0.6, history.shareBefore(10), 1e-9);
        assertEquals(1, history.shareBefore(6), 1e-9, "the window was not full: nothing has left it yet");
        assertEquals(0.75, history.shareBefore(8), 1e-9);
        assertEquals(0, history.shareBefore(0), 1e-9);
        assertEquals(0.2, history.weightedFactor(), 1e-9);
        history.add(0.1, 8);
        assertEquals(0, history.shareBefore(10), 1e-9);
        assertEquals((2 * 0.5 + 8 * 0.1) / 10, history.weightedFactor(), 1e-9);
        history.clear();
        assertEquals(1, history.shareBefore(10), 1e-9);
        for (int i = 0; i < 10_000; i++) {
            history.add(random.nextDouble(), 0.05 + random.nextDouble() / 10);
            double whole = history.shareBefore(10) + history.weightedFactor();
            assertTrue(whole >= 0 && whole <= 1 + 1e-6);
        }
    }
}
