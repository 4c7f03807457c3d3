package org.kquota.govern;

import org.kquota.quota.TagSet;

/** What the governor knows of one tag set. Used by its thread only. */
final class Meter {
    /**
     * Looks are a tenth of a second apart; one that comes later than this is late. What came in meanwhile is a rate and not
     * an arrival: taken for one, a stall of a second before a pause would leave no room for mutes in it.
     */
    private static final double LATE_SECONDS = 0.2;
    private final TagSet tagSet;
    private double observed;
    private double baseline;
    private double beforeThrottle;
    private final RecentMaximum arrivals = new RecentMaximum();
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

    /** The most that was lately seen to arrive between two looks beyond what the limit let in, bytes. */
    double arrivalBytes() {
        return arrivals.get();
    }

    /**
     * Takes a look.
     *
     * @param rate              O now, bytes per second
     * @param seconds           time since the last look
     * @param rememberedSeconds how long what arrives is remembered
     * @return what arrives between two looks beyond what the limit lets in, bytes; of a late look, its share
     */
    double observe(double rate, double seconds, double windowSeconds, double rememberedSeconds) {
        double arrived = seen ? arrivedBytes(rate, seconds, windowSeconds) * Math.min(1, LATE_SECONDS / seconds) : 0;
        arrivals.add(arrived, seconds, rememberedSeconds);
        observed = rate;
        seen = true;
        return arrived;
    }

    /** Without a limit that is what landed; with one, what landed while there was room below it was let in on purpose. */
    private double arrivedBytes(double rate, double seconds, double windowSeconds) {
        if (tagSet.limit() == TagSet.NO_LIMIT) {
            return Math.max(0, (rate - observed) * windowSeconds + rate * seconds);
        }
        return Math.max(0, (rate - Math.max(observed, tagSet.limit())) * windowSeconds);
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
