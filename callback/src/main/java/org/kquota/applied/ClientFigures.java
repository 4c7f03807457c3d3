package org.kquota.applied;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.annotation.JsonNaming;

import java.util.List;

/**
 * The clients of this broker, in the applied-state file; rates and limits in bytes per second, null where there is no limit.
 *
 * @param known   how many users and client ids have figures of their own
 * @param top     the largest of them, the largest producer first
 * @param refused clients whose produce requests were refused, the worst first
 * @param groups  the quota groups and their limits on this broker
 */
@JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
public record ClientFigures(int known, List<Client> top, List<Refused> refused, List<Group> groups) {
    public ClientFigures {
        top = List.copyOf(top);
        refused = List.copyOf(refused);
        groups = List.copyOf(groups);
    }

    /**
     * Clients with one set of metric tags.
     *
     * @param fetchedBytes read as consumers; null in a file of a version that does not count it
     * @param factor       the worst of the topics at stake that they wrote to lately, or null where they wrote to none
     * @param topics       those that they wrote to in the last minute, or null where not all of them are known
     */
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    public record Client(String user, String clientId, long producedBytes, @JsonInclude(JsonInclude.Include.NON_NULL) Long fetchedBytes,
                         double heldSeconds, double produceByteRate, double produceThrottleMs, Double produceLimitByteRate,
                         double fetchByteRate, double fetchThrottleMs, Double fetchLimitByteRate,
                         @JsonInclude(JsonInclude.Include.NON_NULL) Double factor, @JsonInclude(JsonInclude.Include.NON_NULL) List<String> topics) {
    }

    /** A client as Type:name and client id, and its produce requests refused since it is counted apart. */
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    public record Refused(String principal, String clientId, long requests) {
    }

    /** A group and what its members used together; the partitions are those that its totals are shared by, null where it has none. */
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    public record Group(String name, Double produceLimitByteRate, Double fetchLimitByteRate, Double requestLimitPercentage,
                        Integer partitions, Integer partitionsLed, long producedBytes,
                        @JsonInclude(JsonInclude.Include.NON_NULL) Long fetchedBytes, double heldSeconds, double produceByteRate,
                        double produceThrottleMs, double fetchByteRate, double fetchThrottleMs, long refusedRequests) {
    }
}
