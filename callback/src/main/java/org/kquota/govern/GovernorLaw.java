package org.kquota.govern;

/**
 * The arithmetic by which limits slow producers down without silencing them for long. Pure.
 *
 * <p>The broker mutes a connection that exceeds its limit T for (O − T) / T · W (KIP-13), where O is the rate observed
 * over the window W. With O·W the bytes in the window, a limit of (O·W + S) / (W + D) keeps the mute at D after another
 * S bytes have come in, which is why no limit below that is ever set: it would mute for longer than D, and one near
 * zero for longer than any pause.
 */
public final class GovernorLaw {
    private GovernorLaw() {
    }

    /**
     * The limit of a tag set, in bytes per second.
     *
     * @param targetAverage  the target averaged over the last W seconds, bytes per second
     * @param observed       O, the rate observed now, bytes per second
     * @param windowSeconds  W
     * @param arrivalBytes   S, what may arrive until the limit is looked at again
     * @param muteSeconds    D, the longest mute wanted
     */
    public static double limit(double targetAverage, double observed, double windowSeconds, double arrivalBytes,
                               double muteSeconds) {
        return Math.max(targetAverage, (observed * windowSeconds + arrivalBytes) / (windowSeconds + muteSeconds));
    }

    /**
     * The mute that the broker gives a connection, in seconds: (O − T) / T · W of KIP-13, none below the limit.
     *
     * @param bytesInWindow what was produced in the window, the request just appended included
     */
    public static double mute(double bytesInWindow, double limit, double windowSeconds) {
        return Math.max(0, bytesInWindow / limit - windowSeconds);
    }

    /**
     * D in THROTTLE: a rate below arrival / D cannot be had with mutes of D, so small targets need longer ones.
     *
     * @param arrivalBytes what was lately seen to arrive between two looks
     * @param target       bytes per second
     */
    public static double throttleMuteSeconds(double arrivalBytes, double target, double minSeconds, double maxSeconds) {
        double wanted = target > 0 ? 2 * arrivalBytes / target : maxSeconds;
        return Math.min(Math.max(wanted, minSeconds), Math.max(minSeconds, maxSeconds));
    }

    /** D in PAUSE: half of what the pause has lasted, so that coming back takes at most half as long as the pause did. */
    public static double pauseMuteSeconds(double elapsedSeconds, double minSeconds, double maxSeconds) {
        return Math.min(Math.max(elapsedSeconds / 2, minSeconds), Math.max(minSeconds, maxSeconds));
    }

    /** The target of a tag set with a baseline: f · min(quota, baseline), bytes per second. */
    public static double target(double factor, double baseline, double quota) {
        return factor * Math.min(quota, baseline);
    }

    /**
     * The target of all clients without a baseline together: what is left of the throttled total, and at least a share of it.
     *
     * @param total         what all producers produced before OPEN was left, bytes per second
     * @param observedKnown what clients with a baseline produce now, bytes per second
     */
    public static double newcomersTarget(double factor, double total, double observedKnown, double minRatio) {
        return Math.max(factor * total * minRatio, factor * total - observedKnown);
    }

    /** Whether a limit has moved by more than the ratio. */
    public static boolean hasMoved(double from, double to, double ratio) {
        if (Double.compare(from, to) == 0) {
            return false;
        }
        if (Double.isInfinite(from) || Double.isInfinite(to)) {
            return true;
        }
        return Math.abs(to - from) > ratio * from;
    }
}
