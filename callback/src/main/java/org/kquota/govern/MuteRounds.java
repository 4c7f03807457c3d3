package org.kquota.govern;

/**
 * The bytes that land in a pool in one round of mutes, seen over the last seconds. Each connection lands a request per mute, so
 * clients that are muted for m produce O = round / m; and since m is (O − T) / T · W, that O is above T.
 */
final class MuteRounds {
    /** Long enough that the steps of Kafka's window do not show, and short compared with a window that has to empty. */
    private static final double AVERAGED_SECONDS = 3;

    private final double windowSeconds;
    private double observed;
    private double limit;
    private boolean seen;

    /** @param windowSeconds W */
    MuteRounds(double windowSeconds) {
        this.windowSeconds = windowSeconds;
    }

    /** Takes in the rate of the pool and its limit, both in bytes per second, which held for this long. */
    void add(double observedNow, double limitNow, double seconds) {
        double share = seen ? 1 - Math.exp(-seconds / AVERAGED_SECONDS) : 1;
        observed += (observedNow - observed) * share;
        limit += (limitNow - limit) * share;
        seen = true;
    }

    /** Another pool from now on, or another state. */
    void clear() {
        observed = 0;
        limit = 0;
        seen = false;
    }

    /** Bytes; 0 while no more is produced than the limit. */
    double bytes() {
        return seen ? Math.max(0, observed * GovernorLaw.mute(observed * windowSeconds, limit, windowSeconds)) : 0;
    }
}
