package org.kquota.govern;

import org.kquota.quota.TagSet;

/** What the governor knows of one tag set. Used by its thread only. */
final class Meter {
    private final TagSet tagSet;
    private double observed;
    private double baseline;
    private double beforeThrottle;
    private double arrivalBytes;
    private boolean seen;

    Meter(TagSet tagSet) {
        this.tagSet = tagSet;
    }

    TagSet tagSet() {
        return tagSet;
    }

    /** O at the last look, bytes per second. */
    double observed() {
        return observed;
    }

    /** The moving average of O while OPEN, bytes per second. */
    double baseline() {
        return baseline;
    }

    /** min(baseline, O) when OPEN was left, bytes per second. */
    double beforeThrottle() {
        return beforeThrottle;
    }

    /** The most that was lately seen to arrive between two looks, bytes. */
    double arrivalBytes() {
        return arrivalBytes;
    }

    /** Takes a look: O now, and how long ago the last one was. */
    void observe(double rate, double seconds, double windowSeconds) {
        if (seen) {
            arrivalBytes *= Math.exp(-seconds / (2 * windowSeconds));
            arrivalBytes = Math.max(arrivalBytes, (rate - observed) * windowSeconds + rate * seconds);
        }
        observed = rate;
        seen = true;
    }

    /** OPEN: the baseline follows O. */
    void learn(double seconds, double baselineSeconds) {
        baseline += (observed - baseline) * (1 - Math.exp(-seconds / baselineSeconds));
    }

    /** OPEN, but O still shows what a throttle did to it: only what is above the frozen baseline is believed. */
    void learnUpwards(double seconds, double baselineSeconds) {
        if (observed > baseline) {
            learn(seconds, baselineSeconds);
        }
    }

    /** OPEN is left. */
    void freeze() {
        beforeThrottle = Math.min(baseline, observed);
    }
}
