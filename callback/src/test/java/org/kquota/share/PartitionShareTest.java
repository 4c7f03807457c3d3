package org.kquota.share;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.re2j.Pattern;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

class PartitionShareTest {
    private static final int HERE = 1;
    private static final Node[] NODES = {null, new Node(1, "one", 1), new Node(2, "two", 2), new Node(3, "three", 3)};
    private final PartitionShare share = new PartitionShare(Pattern.compile("orders.*"));

    /** A cluster where the leaders of each topic's partitions are these nodes; 0 is none. */
    private static Cluster cluster(Map<String, List<Integer>> leaders) {
        List<PartitionInfo> partitions = new ArrayList<>();
        leaders.forEach((topic, ids) -> {
            for (int partition = 0; partition < ids.size(); partition++) {
                partitions.add(new PartitionInfo(topic, partition, NODES[ids.get(partition)], new Node[0], new Node[0]));
            }
        });
        return new Cluster("c", List.of(NODES[1], NODES[2], NODES[3]), partitions, Set.of(), Set.of());
    }

    private boolean update(Map<String, List<Integer>> leaders) {
        return share.update(LedPartitions.of(cluster(leaders), HERE));
    }

    @Test
    @Tag("C5")
    void twoOfEightPartitionsOfEightyMegabytesAreTwenty() {
        assertTrue(update(Map.of("orders", List.of(1, 1, 2, 2, 2, 3, 3, 3), "other", List.of(1, 1, 1))));
        assertEquals(20e6, 80e6 * share.ratio());
    }

    @Test
    @Tag("C5")
    void itFollowsTheLeadersAndTheTopics() {
        update(Map.of("orders", List.of(1, 2, 2, 2)));
        assertEquals(0.25, share.ratio());
        assertFalse(update(Map.of("orders", List.of(2, 1, 2, 3), "other", List.of(1))), "the share is the same");
        assertTrue(update(Map.of("orders", List.of(1, 1, 2, 2))));
        assertEquals(0.5, share.ratio());
        assertTrue(update(Map.of("orders", List.of(1, 1, 2, 2), "orders-2", List.of(2, 2, 2, 2))));
        assertEquals(0.25, share.ratio());
        assertTrue(update(Map.of("orders", List.of(1, 1, 2, 2))), "a topic that is being deleted is gone from the view");
        assertEquals(0.5, share.ratio());
    }

    @Test
    void withoutAPartitionHereItIsTheShareOfOneBecauseZeroWouldBeNoLimit() {
        update(Map.of("orders", List.of(2, 2, 3, 3)));
        assertEquals(0.25, share.ratio());
    }

    @Test
    void withoutAMatchingTopicThereIsNothingToShare() {
        update(Map.of("other", List.of(2, 2)));
        assertEquals(1, share.ratio());
    }

    @Test
    void partitionsWithoutALeaderCountNowhere() {
        update(Map.of("orders", List.of(1, 0, 0, 2)));
        assertEquals(0.5, share.ratio());
    }

    @Test
    @Tag("C5")
    void aLeaderWithSeveralListenersCountsOnce() {
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int listener = 0; listener < 3; listener++) {
            partitions.add(new PartitionInfo("orders", 0, new Node(1, "one", listener), new Node[0], new Node[0]));
        }
        partitions.add(new PartitionInfo("orders", 1, NODES[2], new Node[0], new Node[0]));
        share.update(LedPartitions.of(new Cluster("c", List.of(NODES[1], NODES[2]), partitions, Set.of(), Set.of()), HERE));
        assertEquals(new LedPartitions.Count(2, 1), share.count());
    }

    @Test
    @Tag("C5")
    void theSharesOfAllBrokersThatLeadSomethingAddUpToTheWhole() {
        for (int seed = 0; seed < 200; seed++) {
            Random random = new Random(seed);
            List<Integer> leaders = random.ints(3 + random.nextInt(60), 1, 4).boxed().toList();
            double sum = 0;
            for (int node = 1; node <= 3; node++) {
                PartitionShare here = new PartitionShare(Pattern.compile(".*"));
                here.update(LedPartitions.of(cluster(Map.of("t", leaders)), node));
                sum += here.count().led() == 0 ? 0 : here.ratio();
            }
            assertEquals(1, sum, 1e-9, "leaders " + leaders);
        }
    }
}
