package org.kquota.govern;

/**
 * The law of limits. Pure.
 *
 * <p>The broker mutes a connection that exceeds its limit T for (O − T) / T · W (KIP-13), where O · W are the bytes in its window W. A
 * limit of O · W / (W + D) mutes for D, and one of S / D for D where S bytes arrive at once; a smaller one would mute for longer, and one
 * near zero for longer than any pause. So no limit is below these two, whatever the target.
 */
public final class GovernorLaw {
    /** Kafka logs each change, on disks that are nearly full: those that are not worth it are spared. */
    private static final double CHANGE_MIN_RATIO = 0.01;

    private GovernorLaw() {
    }

    /**
     * The limit of a tag set, in bytes per second.
     *
     * @param target        what its clients may produce, bytes per second
     * @param arrivalBytes  S, what they bring at once
     * @param observed      O, the rate observed now, bytes per second
     * @param windowSeconds W
     * @param muteSeconds   D, the longest mute wanted
     */
    public static double limit(double target, double arrivalBytes, double observed, double windowSeconds, double muteSeconds) {
        double smallest = Math.max(arrivalBytes / muteSeconds, observed * windowSeconds / (windowSeconds + muteSeconds));
        return Math.max(target, smallest);
    }

    /**
     * The target of clients without a baseline together: what the others leave, and at least a share of the throttled total.
     *
     * @param total    total rate of all producers before OPEN was left, bytes per second
     * @param others   rate of the others now, bytes per second
     * @param minRatio the smallest share of the throttled total
     */
    public static double newcomersTarget(double factor, double total, double others, double minRatio) {
        return Math.max(factor * total * minRatio, factor * total - others);
    }

    /** Whether a limit has moved so far that the broker has to know. */
    public static boolean hasMoved(double from, double to) {
        if (Double.compare(from, to) == 0) {
            return false;
        }
        if (Double.isInfinite(from) || Double.isInfinite(to)) {
            return true;
        }
        return Math.abs(to - from) > CHANGE_MIN_RATIO * from;
    }
}
