package org.kquota.decision;

import java.util.List;

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
 * @param topics          where its scope is topics, the factor of each; state and factor are the worst of all. Null where its scope is the cluster
 * @param fallback        whether the decision was made for lack of data
 * @param bootId          boot for which the lease holds
 * @param validUntilUptimeMs end of the lease, milliseconds since boot
 * @param ownLogDirs      the log dirs of this broker's data volumes, or null where a volume cannot be judged by its space alone
 */
public record Decision(
        int schemaVersion,
        String clusterId,
        int brokerId,
        long sequence,
        Mode mode,
        State state,
        double factor,
        TopicFactors topics,
        boolean fallback,
        String bootId,
        long validUntilUptimeMs,
        List<OwnLogDir> ownLogDirs) {

    /** A decision whose scope is the cluster. */
    public Decision(int schemaVersion, String clusterId, int brokerId, long sequence, Mode mode, State state, double factor, boolean fallback, String bootId,
                    long validUntilUptimeMs) {
        this(schemaVersion, clusterId, brokerId, sequence, mode, state, factor, null, fallback, bootId, validUntilUptimeMs, null);
    }

    /** The same with these factors of topics, which are equal to its own. */
    Decision withTopics(TopicFactors equal) {
        return new Decision(schemaVersion, clusterId, brokerId, sequence, mode, state, factor, equal, fallback, bootId, validUntilUptimeMs, ownLogDirs);
    }
}
