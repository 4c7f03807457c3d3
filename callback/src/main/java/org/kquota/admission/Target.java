package org.kquota.admission;

/**
 * The target of all clients together in THROTTLE. Rates in bytes per second.
 *
 * @param factor            throttle factor, between 0 and 1
 * @param knownRate         what the clients that were producing before had, or their quotas where these are less
 * @param totalRate         what all clients are taken to have had as soon as there are others than those
 * @param newcomersMinRatio smallest share of the total for clients that were not producing
 * @param landedRatio       bytes that land in the log for each byte of a produce request, at most 1
 * @param exemptRate        what exempt principals land now, in addition to the target
 */
public record Target(double factor, double knownRate, double totalRate, double newcomersMinRatio, double landedRatio, double exemptRate) {
    /** That of throttled topics alone, which had this rate before; what exempt principals land there counts as the clients'. */
    Target forTopics(double factorOfTopics, double rate) {
        return new Target(factorOfTopics, rate, rate, newcomersMinRatio, landedRatio, 0);
    }

    /** The rate of all before THROTTLE, bytes of requests per second. */
    double unthrottled(boolean withNewcomers) {
        return withNewcomers || knownRate <= 0 ? Math.max(knownRate, totalRate) : knownRate;
    }
}
