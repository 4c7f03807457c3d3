package org.kquota.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class LandedRatioTest {
    private final LandedRatio ratio = new LandedRatio();

    @Test
    void itIsOneUntilThereIsEnoughToCompare() {
        ratio.add(100, 1000, 1);
        assertEquals(1, ratio.get());
        LandedRatio enough = new LandedRatio();
        enough.add(500_000, 1_000_000, 1);
        assertEquals(0.5, enough.get(), 1e-9);
    }

    @Test
    void itIsTheRatioOfTheLastMinute() {
        for (int i = 0; i < 600; i++) {
            ratio.add(100_000, 100_000, 0.1);
        }
        for (int i = 0; i < 6000; i++) {
            ratio.add(40_000, 50_000, 0.1);
        }
        assertEquals(0.8, ratio.get(), 0.001);
    }

    @Test
    void itIsBoundedBothWays() {
        ratio.add(5e6, 2e6, 1);
        assertEquals(1, ratio.get());
        ratio.add(-3e9, 100e6, 1);
        assertEquals(0.1, ratio.get(), 1e-9);
    }
}
