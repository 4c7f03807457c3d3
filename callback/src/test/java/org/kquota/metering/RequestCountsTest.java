package org.kquota.metering;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.lang.management.ManagementFactory;

/** Requests of the last W seconds, for each tag set there is. */
class RequestCountsTest {
    private static final double LOOK_SECONDS = 0.1;

    @ParameterizedTest
    @ValueSource(doubles = {1, 3, 11, 64})
    void inAnUsualWindowTheyAreCountedToASecond(double windowSeconds) {
        RequestCounts counts = new RequestCounts(windowSeconds);
        counts.add(5, 0);
        for (int second = 1; second < windowSeconds; second++) {
            counts.add(0, 1);
            assertEquals(5, counts.inWindow(), "after " + second + " s");
        }
        counts.add(0, 1);
        assertEquals(0, counts.inWindow());
    }

    @ParameterizedTest
    @ValueSource(doubles = {65, 100.5, 600, 86_400})
    void inALongWindowTheyAreCountedToASixtyFourthOfIt(double windowSeconds) {
        RequestCounts counts = new RequestCounts(windowSeconds);
        counts.add(5, 0);
        double part = windowSeconds / 64;
        counts.add(0, windowSeconds - 1.5 * part);
        assertEquals(5, counts.inWindow());
        counts.add(0, 2 * part);
        assertEquals(0, counts.inWindow());
    }

    @Test
    void aSteadyRateIsReadInAWindowOfADay() {
        RequestCounts counts = new RequestCounts(86_400);
        for (int look = 0; look < 1.5 * 86_400 / LOOK_SECONDS; look++) {
            counts.add(1, LOOK_SECONDS);
        }
        assertEquals(864_000, counts.inWindow(), 0.02 * 864_000);
    }

    @Test
    void aLongWindowTakesNoMoreMemoryThanAMinute() {
        allocatedBytes(60);
        long minute = allocatedBytes(60);
        long day = allocatedBytes(86_400);
        assertTrue(day <= 1.2 * minute, day + " bytes for a day, " + minute + " for a minute");
    }

    private static long allocatedBytes(double windowSeconds) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long before = threads.getCurrentThreadAllocatedBytes();
        RequestCounts counts = new RequestCounts(windowSeconds);
        long after = threads.getCurrentThreadAllocatedBytes();
        counts.add(1, 0);
        return after - before;
    }
}
