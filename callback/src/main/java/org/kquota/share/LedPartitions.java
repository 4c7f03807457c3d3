package org.kquota.share;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * How many partitions each topic of the cluster has, and how many of them this broker leads. Immutable.
 *
 * @param topics counts by topic; a topic that is being deleted is not among them
 */
public record LedPartitions(Map<String, Count> topics) {
    public static final LedPartitions UNKNOWN = new LedPartitions(Map.of());

    public LedPartitions {
        topics = Map.copyOf(topics);
    }

    /** Partitions with a leader anywhere, and those of them that are led here. */
    public record Count(int all, int led) {
    }

    /** The counts for this node, by the broker's view of the cluster. */
    public static LedPartitions of(Cluster cluster, int nodeId) {
        Map<String, Count> topics = new HashMap<>();
        for (String topic : cluster.topics()) {
            topics.put(topic, count(cluster.partitionsForTopic(topic), nodeId));
        }
        return new LedPartitions(topics);
    }

    private static Count count(List<PartitionInfo> partitions, int nodeId) {
        // A partition is in the list once for each listener of its leader.
        BitSet all = new BitSet();
        BitSet led = new BitSet();
        for (PartitionInfo partition : partitions) {
            Node leader = partition.leader();
            if (leader != null) {
                all.set(partition.partition());
                led.set(partition.partition(), leader.id() == nodeId);
            }
        }
        return new Count(all.cardinality(), led.cardinality());
    }
}
