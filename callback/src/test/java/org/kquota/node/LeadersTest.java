package org.kquota.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.TestDecision;
import org.kquota.TestProperties;
import org.kquota.config.KquotaConfig;
import org.kquota.config.LiveProperties;
import org.kquota.decision.BootClock;
import org.kquota.decision.Mode;
import org.kquota.error.Errors;
import org.kquota.group.Group;
import org.kquota.share.LedPartitions;
import org.kquota.threshold.Thresholds;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** The leaders of partitions by the broker and by the agent's file: the newest count. */
class LeadersTest {
    private static final double TOTAL = 80e6;

    @TempDir
    private Path directory;
    private final BootClock bootClock = new BootClock();
    private final AtomicLong lateNanos = new AtomicLong();
    private final Errors errors = new Errors();
    private LiveProperties properties;
    private Leaders leaders;

    @BeforeEach
    void aBrokerWithATotal() throws IOException {
        new TestDecision(directory).write("OPEN", 1);
        properties = new LiveProperties(new LiveProperties.Target() {
            @Override
            public Mode brokerMode() {
                return Mode.OBSERVE;
            }

            @Override
            public void brokerMode(Mode mode) {
                throw new IllegalStateException("the mode is not changed here");
            }

            @Override
            public void configure(KquotaConfig next) {
                throw new IllegalStateException("nothing is changed here");
            }
        }, config(true), errors);
        leaders = leaders(properties);
    }

    private KquotaConfig config(boolean hasTotal) {
        Map<String, Object> all = new HashMap<>(TestProperties.broker(directory));
        all.put(KquotaConfig.TOPICS_FILE, directory.resolve("topics.json").toString());
        if (hasTotal) {
            all.put("kquota.quota.groups", "orders");
            all.put("kquota.quota.group.orders.principals", "User:orders");
            all.put("kquota.quota.group.orders.produce.total", "80M");
            all.put("kquota.quota.group.orders.topics", "orders.*");
        }
        return new KquotaConfig(all);
    }

    private Leaders leaders(LiveProperties of) {
        Thresholds thresholds = new Thresholds(directory.resolve("topics.json"), Set.of(), () -> null, errors);
        return new Leaders(of, thresholds, new LimitResets(), errors, bootClock, () -> System.nanoTime() + lateNanos.get());
    }

    private double limit() {
        Group orders = properties.inForce().groups().all().iterator().next();
        return orders.limit(ClientQuotaType.PRODUCE) / TOTAL;
    }

    private static LedPartitions led(int here, int all) {
        return new LedPartitions(Map.of("orders", new LedPartitions.Count(all, here)));
    }

    private void file(String content) throws IOException {
        Files.writeString(directory.resolve("decision/leaders.json"), content);
        leaders.read("c");
    }

    private void file(int here, int all, long ageMs) throws IOException {
        file(1, bootClock.bootId(), here, all, ageMs);
    }

    private void file(int brokerId, String bootId, int here, int all, long ageMs) throws IOException {
        // The uptime goes in steps of 10 ms: within one, a later file may count as the older one.
        LockSupport.parkNanos(30_000_000L);
        file("{\"schema_version\": 1, \"cluster_id\": \"c\", \"broker_id\": " + brokerId + ", \"boot_id\": \"" + bootId + "\", \"seen_uptime_ms\": "
            + (bootClock.uptimeMs() - ageMs) + ", \"topics\": {\"orders\": [" + here + ", " + all + "]}}");
    }

    private long faults() {
        return errors.tally(Errors.Kind.METADATA).count();
    }

    @Test
    @Tag("C5")
    void withoutTheBrokersMetadataTheAgentsLeadersCount() throws IOException {
        assertEquals(1, limit(), "nothing is known");
        assertEquals("none", leaders.report().source());
        file(2, 8, 0);
        assertEquals(0.25, limit());
        assertEquals("agent", leaders.report().source());
        assertEquals(bootClock.uptimeMs(), leaders.report().seenUptimeMs(), 5_000);
        assertEquals(1, leaders.clusterTopics());
        assertNull(leaders.whyOld(), "the agent's are fresh");
        file(4, 8, 0);
        assertEquals(0.5, limit());
        assertEquals(0, faults());
    }

    @Test
    @Tag("C5")
    void theNewestCountWhoeverHasSeenThem() throws IOException {
        file(4, 8, 0);
        leaders.ofBroker(led(2, 8));
        assertEquals(0.25, limit(), "a move counts at once");
        assertEquals("broker", leaders.report().source());
        file(4, 8, 20_000);
        assertEquals(0.25, limit(), "the agent has seen these before");
        lateNanos.addAndGet(60_000_000_000L);
        file(8, 8, 0);
        assertEquals(1, limit(), "the other broker has crashed, and this one does not pass it on");
        lateNanos.addAndGet(600_000_000_000L);
        assertEquals(1, limit(), "what was seen last counts until there is something newer");
    }

    @Test
    void thatLeadersAreOldIsReportedOnceTheAgentIsSilentToo() throws IOException {
        file(2, 8, 0);
        lateNanos.addAndGet(Leaders.FRESH_NANOS - 5_000_000_000L);
        assertNull(leaders.whyOld());
        lateNanos.addAndGet(10_000_000_000L);
        assertTrue(leaders.whyOld().startsWith("shares of totals and of thresholds are those of before"));
        assertNull(leaders.whyOld(), "reported once");
    }

    @Test
    void aFileThatIsNotThisBrokersIsNotUsed() throws IOException {
        file(2, bootClock.bootId(), 2, 8, 0);
        assertEquals(1, limit());
        assertEquals(1, faults());
        leaders.read("c");
        assertEquals(1, faults(), "the same file is reported once");
        file(1, "another-boot", 2, 8, 0);
        assertEquals(1, limit());
        assertEquals(1, faults(), "of a boot before: no fault");
        file(2, 8, -60_000);
        assertEquals(1, limit(), "from the future");
        file("{");
        assertEquals(2, faults());
        file(2, 8, 0);
        assertEquals(0.25, limit());
        Files.delete(directory.resolve("decision/leaders.json"));
        leaders.read("c");
        assertEquals(0.25, limit());
        assertEquals(2, faults());
    }

    @Test
    void aBrokerThatDividesNothingReadsNoFile() throws IOException {
        Leaders unneeded = leaders(new LiveProperties(null, config(false), errors));
        Files.writeString(directory.resolve("decision/leaders.json"), "{");
        unneeded.read("c");
        assertEquals(0, faults());
        assertNull(unneeded.report());
        assertNull(unneeded.whyOld());
    }

    /** The whole node, whose broker never passes its metadata on. */
    @Test
    void aNodeStartsWithTheSharesOfTheFile() throws IOException {
        file(1, bootClock.bootId(), 2, 8, 0);
        try (BrokerNode node = new BrokerNode(config(true), bootClock)) {
            node.start();
            assertEquals(0.25 * TOTAL, node.config().groups().all().iterator().next().limit(ClientQuotaType.PRODUCE));
            assertEquals("agent", node.leaders().source());
            node.metadata(new Cluster("c", List.of(new Node(1, "h", 1)), List.of(new PartitionInfo("orders", 0, new Node(1, "h", 1), new Node[0], new Node[0])),
                Set.of(), Set.of()));
            assertEquals(TOTAL, node.config().groups().all().iterator().next().limit(ClientQuotaType.PRODUCE));
        }
    }
}
