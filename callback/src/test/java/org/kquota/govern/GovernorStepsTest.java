package org.kquota.govern;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.kquota.decision.State;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;
import org.kquota.quota.Tags;

import java.util.OptionalDouble;

/** The limits that single steps set, in figures that can be checked by hand. {@link GovernorTest} shows many of them on a broker. */
class GovernorStepsTest extends SteppedGovernor {
    @Test
    void beforeTheFirstLookThePoolsHaveTheirSmallestRate() {
        assertEquals(100, paused.limit());
        assertEquals(200, newcomers.limit());
    }

    @Test
    void inOpenItOnlyWatches() {
        TagSet app = client("app", 5_000);
        assertEquals(0, steps(120, State.OPEN, 1, app));
        assertEquals(TagSet.NO_LIMIT, app.limit());
        Figures figures = governor.figures();
        assertEquals(2, figures.tagSets(), "the client, and those that share a tag set for want of room");
        assertEquals(5_000, figures.observedRate());
        assertEquals(5_000, figures.baselineRate(), 1);
        assertEquals(0, figures.poolObservedRate());
        assertNull(figures.poolLimit());
        assertNull(figures.muteSeconds());
    }

    @Test
    void inThrottleALimitIsTheFactorsShareOfTheBaselineButMutesForNoLongerThanItMay() {
        TagSet app = client("app", 5_000);
        steps(120, State.OPEN, 1, app);
        assertEquals(1, steps(0.1, State.THROTTLE, 0.2));
        assertTrue(app.hasBaseline());
        assertEquals(4_960, app.limit(), 1, "a hundredth of the way from the baseline to the target, in a hundredth of the window");
        steps(4.9, State.THROTTLE, 0.2);
        assertEquals(3_333, app.limit(), 34, "with 50,000 bytes in the window, that mutes for five seconds");
        steps(5, State.THROTTLE, 0.2);
        client("app", 1_000);
        steps(0.1, State.THROTTLE, 0.2);
        assertEquals(1_000, app.limit(), 1);
        assertEquals(0, steps(5, State.THROTTLE, 0.2), "a limit that does not move is not set again");
        steps(0.1, State.THROTTLE, 0.4);
        assertEquals(2_000, app.limit(), 1, "a larger factor holds from the next step on");
        steps(0.1, State.THROTTLE, 0.2);
        assertEquals(1_960, app.limit(), 1, "a smaller one comes down like the first");
        assertEquals(5_000, governor.figures().baselineRate(), 1);
        assertEquals(5, governor.figures().muteSeconds());
        assertEquals(1, steps(0.1, State.OPEN, 1));
        assertEquals(TagSet.NO_LIMIT, app.limit());
    }

    @Test
    void oneRequestMutesForNoLongerThanItMay() {
        TagSet app = client("app", 5_000);
        steps(120, State.OPEN, 1, app);
        client("app", 5_050);
        steps(0.1, State.OPEN, 1, app);
        client("app", 0);
        steps(11, State.THROTTLE, 0.001);
        assertEquals(100, app.limit(), 12, "a request of about 500 bytes in five seconds, for a target of five bytes per second");
    }

    @Test
    void aQuotaIsScaled() {
        quota("app", 3_000);
        TagSet app = client("app", 5_000);
        steps(60, State.OPEN, 1, app);
        client("app", 0);
        steps(11, State.THROTTLE, 0.5);
        assertEquals(1_500, app.limit(), 16);
    }

    @ParameterizedTest
    @CsvSource({"5000, 200", "2500, 200", "1000, 1500", "0, 2500"})
    void newcomersGetWhatTheOthersLeave(double others, double limit) {
        TagSet app = client("app", 5_000);
        steps(60, State.OPEN, 1, app);
        client("app", others);
        rates.put(Tags.NEWCOMERS, 70.0);
        steps(1, State.THROTTLE, 0.5);
        assertEquals(limit, newcomers.limit(), 0.01 * limit, "and a twentieth of the throttled total at least");
        assertEquals(newcomers.limit(), governor.figures().poolLimit());
        assertEquals(70, governor.figures().poolObservedRate());
        assertEquals(others + 70, governor.figures().observedRate());
    }

    @Test
    void whoProducedNextToNothingIsANewcomer() {
        TagSet idle = client("idle", 1_000);
        TagSet limited = client("limited", 1_000);
        quota("limited", 800);
        steps(60, State.OPEN, 1, idle, limited);
        client("limited", 0);
        steps(11, State.THROTTLE, 0.5);
        assertFalse(idle.hasBaseline() || limited.hasBaseline());
        assertEquals(TagSet.NO_LIMIT, idle.limit());
        assertEquals(400, limited.limit(), 4);
    }

    @Test
    void aPauseHoldsAllInOnePoolAtTheSmallestRate() {
        TagSet app = client("app", 5_000);
        steps(60, State.OPEN, 1, app);
        assertEquals(1, steps(0.1, State.PAUSE, 0, app));
        assertEquals(TagSet.NO_LIMIT, app.limit(), "its own limit holds no one");
        assertEquals(100, paused.limit(), "1,000 bytes in ten seconds");
        assertEquals(paused.limit(), governor.figures().poolLimit());
        assertEquals(10, governor.figures().muteSeconds());
        rates.put(Tags.PAUSED, 1_000.0);
        assertEquals(1, steps(0.1, State.PAUSE, 0));
        assertEquals(500, paused.limit(), "10,000 bytes in the window, muted for ten seconds");
        assertEquals(1_000, governor.figures().poolObservedRate());
        rates.put(Tags.PAUSED, 30.0);
        steps(0.1, State.PAUSE, 0);
        assertEquals(100, paused.limit());
        assertEquals(0, steps(60, State.PAUSE, 0));
    }

    @Test
    void behindAFenceWhatWasUnderWayIsNotMutedUntilTheFenceFails() {
        TagSet app = client("app", 5_000);
        steps(120, State.OPEN, 1, app);
        fenced = true;
        steps(1, State.PAUSE, 0);
        assertEquals(5_000, paused.limit(), 1);
        fenced = false;
        assertEquals(1, steps(0.1, State.PAUSE, 0));
        assertEquals(100, paused.limit());
    }

    @Test
    void aThrottleAfterAPauseGoesByTheBaselineOfOpen() {
        TagSet app = client("app", 5_000);
        steps(120, State.OPEN, 1, app);
        client("app", 0);
        steps(20, State.PAUSE, 0);
        steps(0.1, State.THROTTLE, 0.5);
        assertEquals(2_500, app.limit(), 1);
    }

    @Test
    void whatCameBeforeARestartCountsForAMinute() {
        for (double seconds : new double[] {50, 70}) {
            TagSet pool = new TagSet(Tags.NEWCOMERS);
            Governor restarted = new Governor(SETTINGS, quotas, new TagSets(quotas, 10), new TagSet(Tags.PAUSED), pool, tags -> OptionalDouble.empty());
            restarted.remember(40_000);
            for (int step = 0; step < seconds / LOOK_SECONDS; step++) {
                restarted.step(State.OPEN, 1, false, LOOK_SECONDS);
            }
            restarted.step(State.THROTTLE, 0.5, false, LOOK_SECONDS);
            assertEquals(seconds < 60 ? 20_000 : 500, pool.limit(), "after " + seconds + " s");
        }
    }

    @Test
    void afterAFaultOfTheFenceLimitsBeginAtTheirTargets() {
        TagSet app = client("app", 5_000);
        steps(120, State.OPEN, 1, app);
        fenced = true;
        steps(20, State.THROTTLE, 0.5, app);
        client("app", 2_500);
        fenced = false;
        steps(0.1, State.THROTTLE, 0.5, app);
        assertEquals(2_500, app.limit(), 1);
    }

    @Test
    void whatAThrottleLeftIsNotLearntUntilTheWindowHasPassed() {
        TagSet app = client("app", 5_000);
        steps(120, State.OPEN, 1, app);
        steps(20, State.THROTTLE, 0.2, app);
        client("app", 1_000);
        steps(5, State.OPEN, 1, app);
        assertEquals(5_000, governor.figures().baselineRate(), 1);
        steps(100, State.OPEN, 1, app);
        assertEquals(1_000, governor.figures().baselineRate(), 5);
    }
}
