package org.kquota.decision;

/**
 * The part of a decision file that the broker acts on.
 *
 * @param schemaVersion   version of the file's schema, at least 1
 * @param clusterId       cluster for which it was decided
 * @param brokerId        broker for which it was decided
 * @param sequence        the writer's counter; any value is accepted, because a restarted writer may start again
 * @param mode            whether the writer wants the decision enforced
 * @param state           the decided state
 * @param factor          throttle factor: 1 in OPEN, 0 in PAUSE, between them in THROTTLE
 * @param fallback        whether the decision was made for lack of data
 * @param bootId          boot for which the lease holds
 * @param validUntilUptimeMs end of the lease, milliseconds since boot
 */
public record Decision(
        int schemaVersion,
        String clusterId,
        int brokerId,
        long sequence,
        Mode mode,
        State state,
        double factor,
        boolean fallback,
        String bootId,
        long validUntilUptimeMs) {
}
