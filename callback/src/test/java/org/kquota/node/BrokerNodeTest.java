package org.kquota.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.yammer.metrics.core.MetricName;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.apache.logging.log4j.Level;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.kquota.KquotaCallback;
import org.kquota.LogLines;
import org.kquota.TestDecision;
import org.kquota.TestProperties;
import org.kquota.applied.AppliedReport;
import org.kquota.applied.AppliedState;
import org.kquota.config.KquotaConfig;
import org.kquota.decision.BootClock;
import org.kquota.decision.Scope;
import org.kquota.decision.State;
import org.kquota.quota.Tags;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** A node of the cluster through its life, on a clock of the test. */
class BrokerNodeTest {
    private static final KafkaPrincipal ALICE = new KafkaPrincipal("User", "alice");

    @TempDir
    private Path directory;
    private final AtomicLong nanos = new AtomicLong(System.nanoTime());

    private static Cluster cluster(String id) {
        return new Cluster(id, List.of(), List.of(), Set.of(), Set.of());
    }

    /** It has no threads of its own. */
    @Test
    void aControllerForgetsClientsThatAreGone() {
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put("process.roles", "controller");
        try (BrokerNode node = new BrokerNode(new KquotaConfig(properties), new BootClock(), nanos::get)) {
            node.start();
            for (int i = 0; i < 2_000; i++) {
                node.quotas().tags(ClientQuotaType.CONTROLLER_MUTATION, ALICE, "app-" + i);
            }
            assertEquals(Tags.OVERFLOW, node.quotas().tags(ClientQuotaType.CONTROLLER_MUTATION, ALICE, "new"));
            nanos.addAndGet(3_700_000_000_000L);
            node.metadata(cluster("c"));
            assertEquals(0, node.quotas().tagSetCount());
            assertEquals(Tags.of("", "new"), node.quotas().tags(ClientQuotaType.CONTROLLER_MUTATION, ALICE, "new"));
            nanos.addAndGet(1_800_000_000_000L);
            node.metadata(cluster("c"));
            assertEquals(1, node.quotas().tagSetCount(), "seen half an hour ago");
        }
    }

    @ParameterizedTest
    @CsvSource({"metadata.log.dir,log.dirs,from-the-metadata", "log.dir,log.dirs,from-a-log-dir", "log.dirs,log.dir,from-the-metadata", "node.id,node.id,"})
    void theClusterIsKnownBeforeTheBrokerNamesIt(String ofMetadata, String ofLogs, String known) throws IOException {
        new TestDecision(directory).write("OPEN", 1);
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put(ofMetadata, formatted("metadata", "from-the-metadata") + "");
        properties.put(ofLogs, directory.resolve("not-there") + " , " + formatted("logs", "from-a-log-dir"));
        properties.put("node.id", "1");
        try (BrokerNode node = new BrokerNode(new KquotaConfig(properties), new BootClock(), nanos::get)) {
            node.start();
            assertEquals(known, node.clusterId());
            assertEquals(known != null, node.now().lost() != null, "the decision is for cluster c");
            node.metadata(cluster("c"));
            assertEquals("c", node.clusterId());
        }
    }

    @Test
    void theStartNamesWhoIsExempt() throws IOException {
        new TestDecision(directory).write("OPEN", 1);
        try (LogLines log = new LogLines(KquotaCallback.class, Level.INFO);
             BrokerNode node = new BrokerNode(new KquotaConfig(TestProperties.broker(directory)), new BootClock(), nanos::get)) {
            node.start();
            assertTrue(log.lines().stream().anyMatch(line -> line.startsWith("kquota is in force on broker 1: mode ")
                && line.endsWith("; exempt are User:CN=agent,O=x;User:admin")), log.lines().toString());
        }
    }

    @Test
    void aBrokerWhoseFilesNameNoClusterWaitsForItsMetadata() throws IOException {
        new TestDecision(directory).write("OPEN", 1);
        Map<String, Object> properties = TestProperties.broker(directory);
        Path logDir = formatted("logs", "");
        properties.put("log.dirs", logDir.toString());
        try (BrokerNode node = new BrokerNode(new KquotaConfig(properties), new BootClock(), nanos::get)) {
            node.start();
            assertNull(node.clusterId());
        }
        Files.writeString(logDir.resolve("meta.properties"), "cluster.id=\\uzzzz");
        try (BrokerNode node = new BrokerNode(new KquotaConfig(properties), new BootClock(), nanos::get)) {
            node.start();
            assertNull(node.clusterId());
        }
    }

    @Test
    void theReportCountsTheTopicsOfTheClusterOnceTheyAreKnown() throws IOException {
        Files.createDirectories(directory.resolve("applied"));
        try (BrokerNode node = new BrokerNode(new KquotaConfig(TestProperties.broker(directory)), new BootClock(), nanos::get)) {
            assertNull(reported(node).clusterTopics());
            Node elsewhere = new Node(2, "two", 2);
            node.metadata(new Cluster("c", List.of(elsewhere), List.of(new PartitionInfo("a", 0, elsewhere, new Node[0], new Node[0]),
                new PartitionInfo("a", 1, elsewhere, new Node[0], new Node[0]), new PartitionInfo("b", 0, null, new Node[0], new Node[0])),
                Set.of(), Set.of()));
            assertEquals(2, reported(node).clusterTopics());
            node.metadata(cluster("c"));
            assertEquals(0, reported(node).clusterTopics());
        }
    }

    private AppliedState reported(BrokerNode node) throws IOException {
        new AppliedReport(node).write();
        return AppliedState.fromJson(Files.readAllBytes(directory.resolve("applied/applied.json")));
    }

    /** A poll alone would take half of its period in the median. */
    @Test
    void anotherStateIsInForceLongBeforeTheNextPoll() throws Exception {
        TestDecision decision = new TestDecision(directory);
        decision.write("OPEN", 1);
        List<Long> delays = new ArrayList<>();
        Random moments = new Random(1);
        try (BrokerNode node = new BrokerNode(new KquotaConfig(TestProperties.broker(directory)), new BootClock())) {
            node.start();
            Thread.sleep(2 * NodeThreads.LOOK_MS);
            for (int i = 0; i < 20; i++) {
                Thread.sleep(moments.nextLong(NodeThreads.LOOK_MS, 2 * NodeThreads.LOOK_MS));
                State next = i % 2 == 0 ? State.PAUSE : State.OPEN;
                decision.write(next.name(), next == State.OPEN ? 1 : 0);
                long written = System.nanoTime();
                while (node.now().state() != next) {
                    // Not busy, or on a busy machine it would soon wait for its own turn.
                    Thread.sleep(1);
                }
                delays.add(System.nanoTime() - written);
            }
        }
        Collections.sort(delays);
        assertTrue(delays.get(10) < NodeThreads.LOOK_MS * 1_000_000 / 4, delays::toString);
    }

    private Path formatted(String name, String clusterId) throws IOException {
        Path logDir = Files.createDirectories(directory.resolve(name));
        Files.writeString(logDir.resolve("meta.properties"), "#\n#Sun Nov 22 10:00:00 UTC 2026\ncluster.id=" + clusterId + "\nnode.id=1\nversion=1\n");
        return logDir;
    }

    /** Only the fence knows topics: without it, and after a fault of it, the worst of all topics holds for all producers. */
    @Test
    void theScopeIsTopicsOnlyWhileTheFenceCanBeReliedUpon() throws Exception {
        new TestDecision(directory).writeTopics("PAUSE", 0, "{\"orders\": 0}");
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put("kquota.mode", "enforce");
        try (BrokerNode node = new BrokerNode(new KquotaConfig(properties), new BootClock(), System::nanoTime)) {
            node.start();
            assertEquals(Scope.CLUSTER, node.now().scope(), "there is no fence yet");
            assertEquals(Tags.PAUSED, node.quotas().tags(ClientQuotaType.PRODUCE, ALICE, "app"));
            node.fence().install();
            TestDecision.await("the scope is topics", () -> node.now().scope() == Scope.TOPICS);
            assertEquals(State.PAUSE, node.now().enforced());
            assertEquals(Tags.of("", "app"), node.quotas().tags(ClientQuotaType.PRODUCE, ALICE, "app"));
            assertNull(node.quotas().limit(ClientQuotaType.PRODUCE, Tags.of("", "app")), "the governor mutes no client");
            node.fence().fault(new IllegalStateException("an injected fault"));
            TestDecision.await("the scope is the cluster", () -> node.now().scope() == Scope.CLUSTER);
            assertEquals(Tags.PAUSED, node.quotas().tags(ClientQuotaType.PRODUCE, ALICE, "app"));
        }
    }

    /** Where what lands can't be counted, the governor holds producers though there is a fence. */
    @Test
    void requestsTakeTurnsOnlyWhereWhatLandsCanBeCounted() throws Exception {
        new TestDecision(directory).write("THROTTLE", 0.5);
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put("kquota.mode", "enforce");
        MetricName total = new MetricName("kafka.server", "BrokerTopicMetrics", "BytesInPerSec", "", "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec");
        try (BrokerNode node = new BrokerNode(new KquotaConfig(properties), new BootClock(), System::nanoTime)) {
            node.fence().install();
            node.start();
            assertEquals(State.THROTTLE, node.now().enforced());
            assertFalse(node.quotas().admission().inForce());
            KafkaYammerMetrics.defaultRegistry().newMeter(total, "bytes", TimeUnit.SECONDS);
            TestDecision.await("requests take turns", () -> node.quotas().admission().inForce());
        } finally {
            KafkaYammerMetrics.defaultRegistry().removeMetric(total);
        }
    }

    @Test
    void aSmallerFactorThanTheFloorIsRaisedToIt() throws Exception {
        new TestDecision(directory).write("THROTTLE", 0.05);
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put("kquota.produce.factor.min.ratio", "0.3");
        try (BrokerNode node = new BrokerNode(new KquotaConfig(properties), new BootClock())) {
            node.start();
            assertEquals(State.THROTTLE, node.now().state());
            assertEquals(0.3, node.now().factor());
        }
    }
}
