package org.kquota.node;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;

class ResetScheduleTest {
    private static final long TICK_NANOS = 100_000_000L;
    private final ResetSchedule resets = new ResetSchedule();

    /** The ticks of a tenth of a second at which the broker has to look, where limits change at those. */
    private List<Integer> due(int ticks, List<Integer> changes) {
        List<Integer> due = new ArrayList<>();
        for (int tick = 0; tick < ticks; tick++) {
            if (resets.isDue(changes.contains(tick), Long.MAX_VALUE - 20 * TICK_NANOS + tick * TICK_NANOS)) {
                due.add(tick);
            }
        }
        return due;
    }

    @Test
    void theBrokerLooksAtAChangeAndTwiceAfterIt() {
        assertEquals(List.of(3, 13, 53), due(200, List.of(3)));
    }

    @Test
    void afterManyChangesItIsTheLastThatCounts() {
        assertEquals(List.of(3, 4, 9, 19, 30, 40, 80), due(200, List.of(3, 4, 9, 30)));
    }

    @Test
    void withoutAChangeItNeedNotLook() {
        assertEquals(List.of(), due(200, List.of()));
    }
}
