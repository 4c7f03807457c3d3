package org.kquota.govern;

/**
 * The arithmetic by which limits slow producers down without silencing them for long. Pure.
 *
 * <p>The broker mutes a connection that exceeds its limit T for (O − T) / T · W (KIP-13), where O is the rate observed
 * over the window W. With B = O·W the bytes in the window and S what arrives beyond the limit until the next look, the last
 * mute is (max(B, T·W) + S) / T − W. So a limit of at least (B + S) / (W + D) and of at least S / D keeps it at D: a smaller
 * one would mute for longer, and one near zero for longer than any pause.
 *
 * <p>S decides how exact mutes are: there is none at all until B is W/D times as much as S. So S is the amount that has lately
 * been seen to arrive, and the larger amount that might surprise us is only kept from muting for longer than the longest
 * mute ever wanted.
 */
public final class GovernorLaw {
    private GovernorLaw() {
    }

    /**
     * The bounds of the mutes of a tag set.
     *
     * @param arrivalBytes        bytes expected to arrive until the next look at the limit, by recent looks
     * @param muteSeconds         D, the longest mute wanted as long as no more arrives
     * @param surpriseBytes       bytes that may arrive unexpectedly
     * @param surpriseMuteSeconds the longest mute then; not less than D
     */
    public record Bounds(double arrivalBytes, double muteSeconds, double surpriseBytes, double surpriseMuteSeconds) {
        double smallestLimit(double bytesInWindow, double windowSeconds) {
            return Math.max(expected(bytesInWindow, windowSeconds), surprised(bytesInWindow, windowSeconds));
        }

        private double expected(double bytesInWindow, double windowSeconds) {
            return smallestLimit(bytesInWindow, windowSeconds, arrivalBytes, muteSeconds);
        }

        private double surprised(double bytesInWindow, double windowSeconds) {
            return smallestLimit(bytesInWindow, windowSeconds, Math.max(arrivalBytes, surpriseBytes), surpriseMuteSeconds);
        }

        private static double smallestLimit(double bytesInWindow, double windowSeconds, double arrival, double mute) {
            return Math.max((bytesInWindow + arrival) / (windowSeconds + mute), arrival / mute);
        }

        /**
         * Whether there is enough in the window for mutes near D: little more, or nothing, has to land before the first
         * of them, and no surprise mutes for longer than it may.
         */
        public boolean areExact(double bytesInWindow, double windowSeconds) {
            return expected(bytesInWindow, windowSeconds) >= surprised(bytesInWindow, windowSeconds)
                && mute(bytesInWindow, expected(bytesInWindow, windowSeconds), windowSeconds) > 0;
        }
    }

    /**
     * The limit of a tag set, in bytes per second.
     *
     * @param targetAverage the target averaged over the last W seconds, bytes per second
     * @param observed      O, the rate observed now, bytes per second
     * @param windowSeconds W
     * @param bounds        the bounds of mutes
     */
    public static double limit(double targetAverage, double observed, double windowSeconds, Bounds bounds) {
        return Math.max(targetAverage, bounds.smallestLimit(observed * windowSeconds, windowSeconds));
    }

    /**
     * The mute that the broker gives a connection, in seconds: (O − T) / T · W of KIP-13, none below the limit.
     *
     * @param bytesInWindow bytes produced in the window, the request just appended included
     */
    public static double mute(double bytesInWindow, double limit, double windowSeconds) {
        return Math.max(0, bytesInWindow / limit - windowSeconds);
    }

    /**
     * D in THROTTLE: mutes of D cannot give a rate below arrival / D, so small targets need longer ones. Clients that share a
     * limit do not come all at once: for a round of them to fit, D is half as long again as it takes at the target.
     *
     * @param arrivalBytes bytes lately seen to arrive between two looks
     * @param roundBytes   bytes that land in one round of mutes, or 0 for a client alone
     * @param target       bytes per second
     */
    public static double throttleMuteSeconds(double arrivalBytes, double roundBytes, double target, double minSeconds, double maxSeconds) {
        double wanted = target > 0 ? Math.max(2 * arrivalBytes, 1.5 * roundBytes) / target : maxSeconds;
        return Math.min(Math.max(wanted, minSeconds), Math.max(minSeconds, maxSeconds));
    }

    /**
     * The limit at which clients that land this much in each round of mutes come to the target: at the target itself they would have
     * to be muted for round / target, and with a limit of the target no client is muted there.
     *
     * @param roundBytes bytes that land in one round of mutes
     * @param maxSeconds the longest mute
     */
    public static double limitForMutes(double target, double roundBytes, double windowSeconds, double maxSeconds) {
        double muteSeconds = target > 0 ? Math.min(roundBytes / target, maxSeconds) : 0;
        return target * windowSeconds / (windowSeconds + muteSeconds);
    }

    /** D in PAUSE: half of the pause's length until now, so that clients come back within half of its length. */
    public static double pauseMuteSeconds(double elapsedSeconds, double minSeconds, double maxSeconds) {
        return Math.min(Math.max(elapsedSeconds / 2, minSeconds), Math.max(minSeconds, maxSeconds));
    }

    /** The target of a tag set with a baseline: f · min(quota, baseline), bytes per second. */
    public static double target(double factor, double baseline, double quota) {
        return factor * Math.min(quota, baseline);
    }

    /**
     * The target of the pool: the rest of the throttled total, and at least the shares of its known members, and
     * a share for those that are new.
     *
     * @param total          total rate of all producers before OPEN was left, bytes per second
     * @param observedApart  total rate of clients with a limit of their own now, bytes per second
     * @param pooledBaseline what the known members of the pool produced before, bytes per second
     * @param minRatio       the smallest share of the throttled total
     */
    public static double poolTarget(double factor, double total, double observedApart, double pooledBaseline, double minRatio) {
        return Math.max(factor * Math.max(total * minRatio, pooledBaseline), factor * total - observedApart);
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
