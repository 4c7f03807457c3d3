package org.kquota.metering;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.kquota.quota.TagSet;
import org.kquota.quota.Tags;

import java.util.OptionalDouble;

/** The meter learns of one client from its rate and its requests, in figures that can be checked by hand. */
class MeterTest {
    private static final double WINDOW = 10;
    private static final double REQUEST_MAX = 1_000_000;
    private static final double EXACT = 1e-9;
    /** After this long the moving average has taken over half of a new rate. */
    private static final double HALF_LIFE_OF_A_SECOND = 1 / Math.log(2);

    private final TagSet tagSet = new TagSet(Tags.of("", "app"));
    private double rate;
    private int reads;
    private double now;
    private Meter meter = meter(REQUEST_MAX, false);

    private Meter meter(double requestMaxBytes, boolean isPool) {
        return new Meter(tagSet, () -> {
            reads++;
            return OptionalDouble.of(rate);
        }, 0, WINDOW, requestMaxBytes, isPool);
    }

    private void observe(double seconds, int requests, double bytesPerSecond) {
        for (int i = 0; i < requests; i++) {
            tagSet.touch(0);
        }
        now += seconds;
        rate = bytesPerSecond;
        meter.observe(now, true);
    }

    @Test
    void ofAYoungClientTheRateIsThatOfItsLifeButOfTwoSecondsAtLeast() {
        for (double[] figures : new double[][] {{0.5, 5_000}, {2, 5_000}, {5, 2_000}, {10, 1_000}, {30, 1_000}}) {
            meter = meter(REQUEST_MAX, false);
            now = 0;
            observe(figures[0], 1, 1_000);
            meter.learn(1, 100, false);
            assertEquals(figures[1], meter.baseline(), EXACT, "after " + figures[0] + " s");
            assertEquals(1_000, meter.observed());
        }
    }

    @Test
    void ofManyRequestsTheSizeIsTheirMeanAndOfFewThatOfTheLargerOfTheLastTwo() {
        assertEquals(0, meter.requestBytesLately());
        for (int second = 0; second < 20; second++) {
            observe(1, 10, 10_000);
        }
        assertEquals(1_000, meter.requestBytesLately(), EXACT, "ten a second, 10 kB in all");
        observe(0.1, 1, 12_000);
        assertEquals(20_000, meter.requestBytesLately(), EXACT, "one has grown");
        for (int second = 0; second < 11; second++) {
            observe(1, 0, 5_000);
        }
        observe(0.1, 1, 10_000);
        assertEquals(50_000, meter.requestBytesLately(), EXACT);
        observe(0.1, 1, 10_500);
        assertEquals(50_000, meter.requestBytesLately(), EXACT, "another one left the window meanwhile");
        observe(0.1, 1, 13_500);
        assertEquals(30_000, meter.requestBytesLately(), EXACT);
        observe(0.1, 1, 500_000);
        assertEquals(REQUEST_MAX, meter.requestBytesLately(), EXACT, "as large as requests are as a rule, at most");
    }

    /** Where a round is longer than the window, nothing of a client is left in it when its next request comes. */
    @Test
    void ofAClientThatComesLessOftenThanOnceAWindowTheSizeIsThatOfItsLastRequests() {
        observe(0.1, 1, 1_000);
        assertEquals(10_000, meter.requestBytesLately(), EXACT);
        observe(11, 0, 0);
        assertEquals(10_000, meter.requestBytesLately(), EXACT, "it is not forgotten");
        meter.takeArrived();
        observe(2, 1, 13_000);
        assertEquals(130_000, meter.requestBytesLately(), EXACT, "it has grown while it waited");
        assertEquals(130_000, meter.takeArrived(), EXACT);
    }

    /** Of a steady client as much leaves the window as comes; and nothing of it is left in the window when it comes back. */
    @Test
    void ofAClientThatWasSteadyTheSizeIsTheMeanOfItsRequestsWhenItComesBack() {
        for (int look = 0; look < 600; look++) {
            observe(0.1, 1, 10_000);
        }
        meter.takeArrived();
        observe(0.1, 1, 9_990);
        assertEquals(0, meter.takeArrived(), "as much left the window");
        for (int second = 0; second < 20; second++) {
            observe(1, 0, second < 10 ? 9_000 - 1_000 * second : 0);
        }
        assertEquals(1_000, meter.requestBytesLately(), 150);
    }

    @Test
    void ofAYoungClientTheSizeIsLearntFromItsFirstRequestsAndNotFromJumpsOfItsRate() {
        observe(1, 10, 1_000);
        assertEquals(1_000, meter.requestBytesLately(), EXACT);
        observe(0.1, 1, 1_200);
        assertEquals(1_200 * WINDOW / 11, meter.requestBytesLately(), EXACT, "1,000 of the rise may be a jump");
        observe(0.1, 1, 3_320);
        assertEquals(20_000, meter.requestBytesLately(), EXACT, "more than a jump");
        assertEquals(20_000, meter.takeArrived(), EXACT);
    }

    @Test
    void theBaselineIsAMovingAverage() {
        assertEquals(0, meter.baseline());
        observe(10, 1, 5_000);
        meter.learn(1, HALF_LIFE_OF_A_SECOND, false);
        assertEquals(5_000, meter.baseline(), EXACT);
        observe(1, 1, 1_000);
        meter.learn(2, HALF_LIFE_OF_A_SECOND, false);
        assertEquals((0.25 * 5_000 + 0.5 * 1_000) / 0.75, meter.baseline(), EXACT);
        double before = meter.baseline();
        meter.learn(2, HALF_LIFE_OF_A_SECOND, false);
        assertEquals(before, meter.baseline(), "no time has passed");
    }

    @Test
    void whileARateIsOurOwnDoingOnlyMoreIsLearnt() {
        observe(10, 1, 5_000);
        meter.learn(1, HALF_LIFE_OF_A_SECOND, false);
        observe(1, 1, 1_000);
        meter.learn(2, HALF_LIFE_OF_A_SECOND, true);
        assertEquals(5_000, meter.baseline(), EXACT);
        observe(1, 1, 8_000);
        meter.learn(3, HALF_LIFE_OF_A_SECOND, true);
        assertEquals((0.25 * 5_000 + 0.5 * 8_000) / 0.75, meter.baseline(), EXACT, "the second in which it was not believed is left out");
    }

    @Test
    void bytesThatCatchUpAfterAHoldDoNotRaiseTheBaseline() {
        observe(10, 1, 5_000);
        meter.learn(10, HALF_LIFE_OF_A_SECOND, false);
        meter.freeze();
        observe(2, 1, 1_000);
        observe(1, 1, 6_000);
        observe(3, 0, 1_000);
        meter.learnsFrom(now);
        for (int second = 0; second < 2; second++) {
            observe(1, 1, 15_000);
            meter.learn(now, HALF_LIFE_OF_A_SECOND, true);
            assertEquals(5_000, meter.baseline(), EXACT, "20,000 were withheld");
        }
        observe(1, 1, 15_000);
        meter.learn(now, HALF_LIFE_OF_A_SECOND, true);
        assertTrue(meter.baseline() > 9_000, "all has come: the client has grown");
    }

    @Test
    void whatComesAfterALongHoldIsThatOfTwoMinutesAtMost() {
        observe(10, 1, 5_000);
        meter.learn(10, HALF_LIFE_OF_A_SECOND, false);
        meter.freeze();
        observe(100, 0, 0);
        now += 900;
        meter.pass(now);
        meter.learnsFrom(now);
        observe(100, 1, 11_000);
        meter.learn(now, HALF_LIFE_OF_A_SECOND, true);
        assertEquals(5_000, meter.baseline(), EXACT, "600,000 were withheld");
        observe(1, 1, 11_000);
        meter.learn(now, HALF_LIFE_OF_A_SECOND, true);
        assertTrue(meter.baseline() > 5_000);
    }

    @Test
    void whatWasBeforeOpenIsNotLearnt() {
        observe(10, 1, 5_000);
        meter.learn(1, HALF_LIFE_OF_A_SECOND, false);
        observe(10, 1, 1_000);
        meter.learnsFrom(20);
        meter.learn(21, HALF_LIFE_OF_A_SECOND, false);
        assertEquals((0.25 * 5_000 + 0.5 * 1_000) / 0.75, meter.baseline(), EXACT);
    }

    @Test
    void aClientOfWhichNothingIsLeftIsQuietUntilARequestComes() {
        observe(1, 1, 1_000);
        assertFalse(meter.isQuiet());
        observe(1, 0, 0);
        assertFalse(meter.isQuiet(), "the bytes of its request may be still to come");
        observe(9, 0, 0);
        assertTrue(meter.isQuiet());
        tagSet.touch(0);
        assertFalse(meter.isQuiet());
    }

    @Test
    void aPoolIsNeverQuiet() {
        meter = meter(REQUEST_MAX, true);
        observe(1, 0, 0);
        observe(100, 0, 0);
        assertFalse(meter.isQuiet());
    }

    @Test
    void aRateThatIsNothingStaysSoWhileNoClientIsMeteredByItsTags() {
        meter.observe(1, false);
        assertEquals(0, reads);
        observe(1, 1, 500);
        assertEquals(1, reads);
        rate = 400;
        meter.observe(3, false);
        assertEquals(2, reads, "the rest of it is followed");
        assertEquals(400, meter.observed());
    }

    @Test
    void whatRequestsBroughtIsToldOnce() {
        observe(10, 10, 1_000);
        observe(0.1, 2, 1_000);
        assertEquals(0, meter.takeArrived(), "as much left the window");
        observe(0.1, 2, 1_500);
        assertEquals(500 * WINDOW, meter.takeArrived(), EXACT);
        assertEquals(0, meter.takeArrived());
        observe(0.1, 0, 1_500);
        assertEquals(0, meter.takeArrived(), "no request came");
    }

    @Test
    void itKnowsItsPlace() {
        assertSame(tagSet, meter.tagSet());
        meter.place(7);
        assertEquals(7, meter.place());
    }
}
