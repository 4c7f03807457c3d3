package org.kquota.govern;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.junit.jupiter.api.Test;
import org.kquota.admission.Target;
import org.kquota.decision.State;
import org.kquota.quota.TagSet;

import java.util.List;

/** The governor behind a fence in THROTTLE: it weighs clients, and sets no limit. */
class GovernorAdmissionTest extends SteppedGovernor {
    private int steps(double seconds, State state, double factor, boolean behindFence, TagSet... sending) {
        fenced = behindFence;
        return steps(seconds, state, factor, sending);
    }

    @Test
    void eachClientWeighsAsMuchAsItProducedBeforeOrItsQuota() {
        TagSet small = client("small", 5_000);
        TagSet large = client("large", 20_000);
        TagSet bounded = client("bounded", 20_000);
        quota("bounded", 8_000);
        steps(120, State.OPEN, 1, false, small, large, bounded);
        assertNull(governor.target(0.5, 1, 0));
        TagSet late = client("late", 3_000);
        steps(0.1, State.THROTTLE, 0.5, true, small, large, bounded, late);
        assertEquals(5_000, small.share().weight(), 50);
        assertEquals(20_000, large.share().weight(), 200);
        assertEquals(0, late.share().weight(), "it is a newcomer");
        assertEquals(2_100, large.share().requestBytes(0), 100, "ten requests a second, counted in slices of the window");
        for (TagSet each : List.of(small, large, bounded, late)) {
            assertEquals(TagSet.NO_LIMIT, each.limit(), "no delay but that of its quota");
        }
        Target target = governor.target(0.5, 0.9, 700);
        assertEquals(5_000 + 20_000 + bounded.share().weight(), target.knownRate(), 1);
        assertEquals(0.5, target.factor());
        assertEquals(0.9, target.landedRatio());
        assertEquals(700, target.exemptRate());
        assertEquals(0.05, target.newcomersMinRatio());
    }

    @Test
    void aQuotaThatChangesMeanwhileCountsFromThenOn() {
        TagSet app = client("app", 20_000);
        steps(120, State.OPEN, 1, false, app);
        steps(1, State.THROTTLE, 0.5, true, app);
        double before = governor.target(0.5, 1, 0).knownRate();
        quotas.update(() -> List.of(new Part(ClientQuotaEntity.ConfigEntityType.CLIENT_ID, "app")), 6_000);
        steps(1, State.THROTTLE, 0.5, true, app);
        assertEquals(20_000, before, 200);
        assertEquals(6_000, governor.target(0.5, 1, 0).knownRate(), 1);
    }

    @Test
    void withoutTheFenceThePoolOfNewcomersGetsWhatTheOthersLeave() {
        TagSet large = client("large", 100_000);
        steps(120, State.OPEN, 1, false, large);
        client("large", 0);
        steps(30, State.THROTTLE, 0.5, false);
        assertEquals(0.5 * 100_000, newcomers.limit(), 1_000);
    }

    @Test
    void withAndWithoutTheFenceInTheMiddleOfAThrottle() {
        TagSet app = client("app", 5_000);
        steps(120, State.OPEN, 1, false, app);
        steps(5, State.THROTTLE, 0.2, true, app);
        assertNotNull(governor.target(0.2, 1, 0));
        assertEquals(1, steps(0.1, State.THROTTLE, 0.2, false, app), "the broker has to take over limits");
        assertNotEquals(TagSet.NO_LIMIT, app.limit());
        assertNull(governor.target(0.2, 1, 0));
        assertTrue(steps(0.1, State.THROTTLE, 0.2, true, app) > 0);
        assertEquals(TagSet.NO_LIMIT, app.limit());
        steps(0.1, State.PAUSE, 0, true, app);
        assertNull(governor.target(0, 1, 0));
        steps(0.1, State.OPEN, 1, true, app);
        assertEquals(TagSet.NO_LIMIT, app.limit(), "nothing is left at the release");
    }

    private void stepsByTopic(double seconds, double slowest, TagSet... sending) {
        for (int step = 0; step < Math.round(seconds / LOOK_SECONDS); step++) {
            for (TagSet tagSet : sending) {
                tagSet.touch(1);
            }
            governor.stepByTopic(State.THROTTLE, slowest, LOOK_SECONDS);
        }
    }

    @Test
    void whatArrivesIsToldToTheClientsShare() {
        TagSet app = client("app", 20_000);
        steps(120, State.OPEN, 1, true, app);
        client("app", 20_050);
        steps(0.1, State.THROTTLE, 0.2, true, app);
        assertEquals(500, app.share().unexpectedBytes(0), 1, "50 B/s more in a window of 10 s, and no request was charged");
    }

    @Test
    void byTopicWhatArrivesIsNotChargedToAClient() {
        TagSet app = client("app", 20_000);
        steps(120, State.OPEN, 1, true, app);
        client("app", 20_050);
        stepsByTopic(0.1, 0.2, app);
        assertEquals(0, app.share().unexpectedBytes(0));
        stepsByTopic(5, 0.2, app);
        assertEquals(20_000, app.share().weight(), 200);
        assertNotNull(governor.target(0.2, 1, 0));
    }
}
