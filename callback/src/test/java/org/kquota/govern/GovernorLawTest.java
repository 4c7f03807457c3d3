package org.kquota.govern;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.Random;

class GovernorLawTest {
    private final Random random = new Random(1);

    private double any(double from, double to) {
        return from * Math.pow(to / from, random.nextDouble());
    }

    /** The mute that the broker gives a connection, in seconds: (O − T) / T · W of KIP-13, none below the limit. */
    private static double mute(double bytesInWindow, double limit, double windowSeconds) {
        return Math.max(0, bytesInWindow / limit - windowSeconds);
    }

    @ParameterizedTest
    @CsvSource({
        // target, arrival, observed, window, mute, limit
        "500, 1000, 600, 10, 10, 500", "0, 1000, 0, 10, 10, 100", "0, 1000, 600, 10, 10, 300", "0, 1000, 600, 10, 20, 200", "0, 7000, 600, 10, 10, 700"})
    void aLimitIsTheTargetOrWhatKeepsMutesShort(double target, double arrival, double observed, double window, double mute, double limit) {
        assertEquals(limit, GovernorLaw.limit(target, arrival, observed, window, mute), 1e-9);
    }

    @Test
    void aMuteIsLongerThanTheLongestOnlyByWhatArrivesAtOnce() {
        for (int i = 0; i < 100_000; i++) {
            double window = any(1, 100);
            double longest = any(0.1, 600);
            double arrival = any(1, 1e9);
            double observed = any(1e-3, 1e9);
            double limit = GovernorLaw.limit(any(1e-3, 1e9), arrival, observed, window, longest);
            assertTrue(mute(observed * window, limit, window) <= longest * (1 + 1e-9), "what is in the window");
            double times = any(1e-3, 1e3);
            assertTrue(mute(observed * window + arrival * times, limit, window) <= (1 + times) * longest * (1 + 1e-9), "and what arrives");
        }
    }

    @Test
    void aSmallerTargetNeverGivesALargerLimit() {
        for (int i = 0; i < 10_000; i++) {
            double arrival = any(1, 1e9);
            double observed = any(1e-3, 1e9);
            double target = any(1e-3, 1e9);
            double limit = GovernorLaw.limit(target, arrival, observed, 11, 10);
            assertTrue(limit >= target);
            assertTrue(GovernorLaw.limit(target * random.nextDouble(), arrival, observed, 11, 10) <= limit);
        }
    }

    @ParameterizedTest
    @CsvSource({"1000, 0, 500", "1000, 400, 100", "1000, 490, 25", "1000, 2000, 25"})
    void newcomersGetWhatIsLeftAndAtLeastTheirShare(double total, double others, double target) {
        assertEquals(target, GovernorLaw.newcomersTarget(0.5, total, others, 0.05), 1e-9);
    }

    @Test
    void aLimitMovesOnlyBeyondItsRatio() {
        assertFalse(GovernorLaw.hasMoved(100, 100));
        assertFalse(GovernorLaw.hasMoved(100, 101) || GovernorLaw.hasMoved(100, 99));
        assertTrue(GovernorLaw.hasMoved(100, 101.1) && GovernorLaw.hasMoved(100, 98.9));
        assertTrue(GovernorLaw.hasMoved(Double.POSITIVE_INFINITY, 1) && GovernorLaw.hasMoved(1, Double.POSITIVE_INFINITY));
        assertFalse(GovernorLaw.hasMoved(Double.POSITIVE_INFINITY, Double.POSITIVE_INFINITY));
    }
}
