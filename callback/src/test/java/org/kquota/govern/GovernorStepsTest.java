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

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;

/** The limits that single steps set, in figures that can be checked by hand. {@link GovernorTest} shows many of them on a broker. */
class GovernorStepsTest extends SteppedGovernor {
    @Test
    void beforeTheFirstLookThePoolsLetInLittleMoreThanOneArrivalInEachMute() {
        assertEquals(100, paused.limit());
        assertEquals(100, newcomers.limit());
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
    void inThrottleALimitMovesFromTheBaselineToItsShareWithinTheWindow() {
        TagSet app = client("app", 5_000);
        steps(120, State.OPEN, 1, app);
        assertEquals(1, steps(0.1, State.THROTTLE, 0.5));
        assertTrue(app.hasBaseline());
        assertEquals(0.99 * 5_000 + 0.01 * 0.5 * 5_000, app.limit(), 1, "a hundredth of the window has passed");
        client("app", 2_500);
        steps(5, State.THROTTLE, 0.5);
        assertEquals(0.75 * 5_000, app.limit(), 60);
        steps(25, State.THROTTLE, 0.5);
        assertEquals(2_500, app.limit(), 30, "it moves by a hundredth at least");
        assertEquals(0, steps(5, State.THROTTLE, 0.5), "a limit that does not move is not set again");
        assertEquals(5_000, governor.figures().baselineRate(), 1);
        assertEquals(1, steps(0.1, State.OPEN, 1));
        assertEquals(TagSet.NO_LIMIT, app.limit());
    }

    @Test
    void aQuotaIsScaledAndNeverExceeded() {
        quota("app", 3_000);
        TagSet app = client("app", 5_000);
        steps(60, State.OPEN, 1, app);
        steps(0.1, State.THROTTLE, 0.5);
        assertEquals(3_000, app.limit(), "its earlier rate would allow more");
        client("app", 1_500);
        steps(30, State.THROTTLE, 0.5);
        assertEquals(1_500, app.limit(), 15);
    }

    @ParameterizedTest
    @CsvSource({"5000, 200", "2500, 200", "1000, 1500", "0, 2500"})
    void newcomersGetWhatTheOthersLeave(double others, double limit) {
        TagSet app = client("app", 5_000);
        steps(60, State.OPEN, 1, app);
        client("app", others);
        rates.put(Tags.NEWCOMERS, 70.0);
        steps(30, State.THROTTLE, 0.5);
        assertEquals(limit, newcomers.limit(), 0.01 * limit, "at least the limit that keeps the mute after a surprise at five seconds");
        assertEquals(newcomers.limit(), governor.figures().poolLimit());
        assertEquals(70, governor.figures().poolObservedRate());
        assertEquals(others + 70, governor.figures().observedRate());
        assertEquals(1, governor.figures().muteSeconds());
    }

    @ParameterizedTest
    @CsvSource({"0.03, , true", "0.041, , false", "0.03, 199, false", "0.03, 200, true"})
    void whoseShareIsTooSmallToBeHeldAloneIsPooled(double factor, Double quota, boolean pooled) {
        if (quota != null) {
            quota("small", quota);
        }
        TagSet small = client("small", 5_000);
        steps(60, State.OPEN, 1, small);
        steps(1, State.THROTTLE, factor);
        assertEquals(pooled, small.pooled());
        assertEquals(pooled, small.limit() == TagSet.NO_LIMIT);
        steps(1, State.OPEN, 1);
        steps(0.1, State.THROTTLE, 0.5);
        assertFalse(small.pooled(), "it is asked again each time that OPEN is left");
    }

    @Test
    void theMembersOfThePoolKeepTheirShareOfIt() {
        TagSet one = client("one", 6_000);
        TagSet two = client("two", 6_000);
        TagSet large = client("large", 100_000);
        steps(60, State.OPEN, 1, one, two, large);
        steps(20, State.THROTTLE, 0.03);
        assertTrue(one.pooled() && two.pooled() && !large.pooled());
        assertEquals(0.03 * 12_000, newcomers.limit(), 4, "the large one takes all that is left");
        steps(5, State.PAUSE, 0);
        steps(20, State.THROTTLE, 0.03);
        assertEquals(0.03 * 12_000, newcomers.limit(), 4, "they are counted once");
    }

    @Test
    void whoProducedNextToNothingIsANewcomer() {
        TagSet idle = client("idle", 1_000);
        TagSet limited = client("limited", 1_000);
        quota("limited", 800);
        steps(60, State.OPEN, 1, idle, limited);
        steps(2, State.THROTTLE, 0.5);
        assertFalse(idle.hasBaseline() || limited.hasBaseline());
        assertEquals(TagSet.NO_LIMIT, idle.limit());
        assertEquals(800, limited.limit(), "it keeps its quota until the window has passed");
        client("limited", 0);
        steps(40, State.THROTTLE, 0.5);
        assertEquals(400, limited.limit(), 4);
    }

    @Test
    void aPauseHoldsWhoHasAHistoryByItAndTheOthersTogether() {
        TagSet app = client("app", 5_000);
        TagSet idle = client("idle", 0);
        steps(60, State.OPEN, 1, app, idle);
        assertEquals(1, steps(0.1, State.PAUSE, 0, app));
        assertTrue(app.heldApart());
        assertFalse(idle.heldApart());
        assertEquals(50_500 / 11.0, app.limit(), 10, "one request of 500 bytes is muted for a second at most");
        assertEquals(TagSet.NO_LIMIT, idle.limit());
        assertEquals(100, paused.limit(), 1);
        assertEquals(paused.limit(), governor.figures().poolLimit());
        assertEquals(1, governor.figures().muteSeconds());
        client("app", 0);
        rates.put(Tags.PAUSED, 30.0);
        steps(0.1, State.PAUSE, 0);
        assertFalse(app.heldApart(), "nothing of it is left in the window");
        assertEquals(30, governor.figures().poolObservedRate());
    }

    @Test
    void inAPauseAQuotaIsNotExceeded() {
        quota("app", 2_000);
        TagSet app = client("app", 5_000);
        steps(60, State.OPEN, 1, app);
        steps(0.1, State.PAUSE, 0, app);
        assertTrue(app.heldApart());
        assertEquals(2_000, app.limit());
    }

    @ParameterizedTest
    @CsvSource({"1, false, 1", "6, false, 3", "60, false, 10", "60, true, 1"})
    void mutesGrowWithAPauseButNotBehindAFence(double seconds, boolean behindAFence, double muteSeconds) {
        steps(1, State.OPEN, 1);
        fenced = behindAFence;
        steps(seconds, State.PAUSE, 0);
        assertEquals(muteSeconds, governor.figures().muteSeconds(), 1e-6);
        fenced = false;
        steps(0.1, State.OPEN, 1);
        steps(0.1, State.PAUSE, 0);
        assertEquals(1, governor.figures().muteSeconds(), 1e-6, "another pause");
    }

    @Test
    void theHundredLargestAreHeldApartAtMost() {
        List<TagSet> clients = new ArrayList<>();
        for (int i = 0; i < 150; i++) {
            clients.add(client("app-" + i, 5_000 + 100 * i));
        }
        steps(60, State.OPEN, 1, clients.toArray(TagSet[]::new));
        steps(0.1, State.PAUSE, 0, clients.toArray(TagSet[]::new));
        assertEquals(clients.subList(50, 150), clients.stream().filter(TagSet::heldApart).toList());
        steps(0.1, State.OPEN, 1);
        assertEquals(0, clients.stream().filter(TagSet::heldApart).count());
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
    void aSecondThrottleBeginsAsTheFirst() {
        TagSet app = client("app", 5_000);
        steps(120, State.OPEN, 1, app);
        steps(20, State.THROTTLE, 0.2, app);
        steps(120, State.OPEN, 1, app);
        steps(0.1, State.THROTTLE, 0.5);
        assertEquals(0.99 * 5_000 + 0.01 * 0.5 * 5_000, app.limit(), 1);
    }

    @Test
    void afterAPauseNothingOfBeforeIsLeftInTheWindow() {
        TagSet app = client("app", 5_000);
        steps(120, State.OPEN, 1, app);
        client("app", 0);
        steps(20, State.PAUSE, 0);
        steps(0.1, State.THROTTLE, 0.5);
        assertEquals(200, app.limit(), 10, "no more than the limit that keeps the mute after a surprise at five seconds");
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

    @Test
    void thePoolOfAPauseIsHeldByWhatIsInItsWindow() {
        steps(1, State.OPEN, 1);
        rates.put(Tags.PAUSED, 10_000.0);
        steps(0.1, State.PAUSE, 0);
        assertEquals(100_000 / 11.0, paused.limit(), 1);
        int changes = steps(60, State.PAUSE, 0);
        assertEquals(100_000 / 20.0, paused.limit(), 300, "muted for ten seconds");
        assertTrue(changes < 20, changes + " changes, which Kafka logs");
    }
}
