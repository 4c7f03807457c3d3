package org.kquota.govern;

/**
 * The governor's settings.
 *
 * @param windowSeconds           W, the broker's quota window: quota.window.num × quota.window.size.seconds
 * @param muteMinSeconds          the shortest D
 * @param throttleMuteMaxSeconds  the longest D in THROTTLE
 * @param pauseMuteMaxSeconds     the longest D in PAUSE
 * @param arrivalMinBytes         F, what may arrive as a surprise between two looks
 * @param limitChangeMinRatio     a limit changes only when it moves by more
 * @param baselineSeconds         time constant of the baselines' moving average
 * @param baselineMinBytes        what all producers are taken to have produced at least, bytes per second
 * @param newcomersMinRatio       smallest share of the throttled total for clients without a baseline
 */
public record GovernorSettings(
        double windowSeconds,
        double muteMinSeconds,
        double throttleMuteMaxSeconds,
        double pauseMuteMaxSeconds,
        double arrivalMinBytes,
        double limitChangeMinRatio,
        double baselineSeconds,
        double baselineMinBytes,
        double newcomersMinRatio) {
}
