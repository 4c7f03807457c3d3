package org.kquota.govern;

/**
 * The governor's settings.
 *
 * @param windowSeconds     W, the broker's quota window: quota.window.num × quota.window.size.seconds
 * @param muteMaxSeconds    D in PAUSE, the longest mute wanted
 * @param arrivalMinBytes   F, what clients that share a pool may bring in each D
 * @param baselineSeconds   time constant of the baselines' moving average
 * @param baselineMinBytes  what all producers are taken to have produced at least, bytes per second
 * @param newcomersMinRatio smallest share of the throttled total for clients without a baseline
 */
public record GovernorSettings(
        double windowSeconds,
        double muteMaxSeconds,
        double arrivalMinBytes,
        double baselineSeconds,
        double baselineMinBytes,
        double newcomersMinRatio) {
    /** D in THROTTLE, where a client is to be slow and not silent. */
    double throttleMuteMaxSeconds() {
        return muteMaxSeconds / 2;
    }
}
