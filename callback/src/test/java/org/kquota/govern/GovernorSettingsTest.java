package org.kquota.govern;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.kquota.decision.State;
import org.kquota.quota.StockQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;
import org.kquota.quota.Tags;

import java.util.OptionalDouble;

/** The governor goes by other settings from its next look on, also in the middle of a THROTTLE or a PAUSE. */
class GovernorSettingsTest {
    private static final double MB = 1e6;

    private final StockQuotas quotas = new StockQuotas(StockQuotas.LevelMemory.COUNTED);
    private final TagSet paused = new TagSet(Tags.PAUSED);
    private final TagSet newcomers = new TagSet(Tags.NEWCOMERS);
    private final Governor governor = new Governor(settings(1 * MB, 10), quotas, new TagSets(quotas, 10), paused, newcomers,
        tags -> OptionalDouble.empty());

    private static GovernorSettings settings(double baselineMinBytes, double muteMaxSeconds) {
        return new GovernorSettings(11, muteMaxSeconds, 1_048_576, 10, baselineMinBytes, 0.05);
    }

    @Test
    @Tag("G21")
    void whatNewcomersShareInThrottle() {
        governor.step(State.THROTTLE, 0.5, false, 0.1);
        double before = newcomers.limit();
        governor.settings(settings(40 * MB, 10));
        assertTrue(governor.step(State.THROTTLE, 0.5, false, 0.1), "the broker has to look at its limits");
        assertEquals(0.5 * 40 * MB, newcomers.limit(), 0.01 * MB);
        governor.settings(settings(1 * MB, 10));
        assertTrue(governor.step(State.THROTTLE, 0.5, false, 0.1));
        assertEquals(before, newcomers.limit(), 0.01 * before);
    }

    @Test
    @Tag("G21")
    void howLongAMuteGetsInAPause() {
        for (int look = 0; look < 300; look++) {
            governor.step(State.PAUSE, 0, false, 0.1);
        }
        assertEquals(10, governor.figures().muteSeconds(), 1e-9);
        double before = paused.limit();
        governor.settings(settings(1 * MB, 2));
        assertTrue(governor.step(State.PAUSE, 0, false, 0.1));
        assertEquals(2, governor.figures().muteSeconds(), 1e-9);
        assertTrue(paused.limit() > before, "a shorter mute takes a higher limit");
    }
}
