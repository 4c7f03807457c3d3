package org.kquota.threshold;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.KquotaAuthorizer;
import org.kquota.KquotaCallback;
import org.kquota.TestDecision;
import org.kquota.TestProperties;
import org.kquota.TestRequest;
import org.kquota.config.KquotaConfig;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;

/** Thresholds from their file to the refusal, by the very meters that a broker marks when it appends. */
class TopicThresholdsInForceTest {
    private static final Node HERE = new Node(1, "here", 1);
    private static final Node ELSEWHERE = new Node(2, "elsewhere", 1);
    private static final int MARKED = 50_000_000;

    @TempDir
    private Path directory;
    private final BrokerTopicStats stats = new BrokerTopicStats();
    private final KquotaCallback callback = new KquotaCallback();
    private final KquotaAuthorizer authorizer = new KquotaAuthorizer();

    @BeforeEach
    void aBroker() throws IOException {
        new TestDecision(directory).write("OPEN", 1);
        Files.createDirectory(directory.resolve("topics"), PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwxr-xr-x")));
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put(KquotaConfig.MODE, "enforce");
        properties.put(KquotaConfig.FENCE_AUTHORIZER_CLASS, "none");
        properties.put(KquotaConfig.TOPICS_FILE, directory.resolve("topics/topics.json").toString());
        properties.put("client.quota.callback.class", KquotaCallback.class.getName());
        callback.configure(properties);
        authorizer.configure(properties);
    }

    private void leaders() {
        callback.updateClusterMetadata(new Cluster("c", List.of(HERE, ELSEWHERE), List.of(led("over", HERE), led("under", HERE), led("own", HERE),
            led("elsewhere", ELSEWHERE)), Set.of(), Set.of()));
    }

    private static PartitionInfo led(String topic, Node leader) {
        return new PartitionInfo(topic, 0, leader, new Node[0], new Node[0]);
    }

    @AfterEach
    void stop() throws IOException {
        authorizer.close();
        callback.close();
        stats.close();
    }

    private void thresholds(long total, long ofOwn) throws IOException {
        Path temporary = directory.resolve("topics/temporary");
        Files.writeString(temporary, String.format(Locale.ROOT, "{\"schema_version\": 1, \"total.bytes.in.per.sec.threshold\": %d, "
            + "\"topics\": {\"own\": {\"bytes.in.per.sec.threshold\": %d}}}", total, ofOwn));
        Files.setPosixFilePermissions(temporary, PosixFilePermissions.fromString("rw-r--r--"));
        Files.move(temporary, directory.resolve("topics/topics.json"), StandardCopyOption.ATOMIC_MOVE);
    }

    private boolean refused(String user, String... topics) {
        List<Action> actions = Arrays.stream(topics).map(TestRequest::writeTo).toList();
        try {
            authorizer.authorize(TestRequest.of(ApiKeys.PRODUCE, user), actions);
            return false;
        } catch (NotEnoughReplicasException e) {
            assertTrue(e.getMessage().contains("over its threshold"), e.getMessage());
            return true;
        }
    }

    private void append(String topic, int bytes) {
        stats.topicStats(topic).bytesInRate().mark(bytes);
        stats.allTopicsStats().bytesInRate().mark(bytes);
    }

    private static void await(String what, BooleanSupplier condition) throws InterruptedException {
        for (long end = System.nanoTime() + 90_000_000_000L; !condition.getAsBoolean(); Thread.sleep(20)) {
            assertTrue(System.nanoTime() < end, "it did not come to: " + what);
        }
    }

    @Test
    @Tag("D1")
    @Tag("D4")
    @Tag("D6")
    @Tag("D7")
    @Tag("D9")
    void aTopicOverItsThresholdIsRefusedWholeRequestsAndAllTheOthersPass() throws Exception {
        leaders();
        for (String topic : List.of("over", "own", "elsewhere")) {
            append(topic, MARKED);
        }
        append("under", 1_000);
        // The meters move within five seconds: 50 MB in one of them are ten a second.
        thresholds(4_000_000, 1_000_000);
        await("refused", () -> refused("alice", "over"));
        await("refused by its own threshold", () -> refused("alice", "own"));
        assertTrue(!refused("alice", "under"), "below the share of 1.5 million that topics without a threshold have");
        assertTrue(!refused("alice", "elsewhere"), "led elsewhere, it is not this broker's");
        assertTrue(refused("alice", "under", "over"), "a request is refused whole");
        assertTrue(!refused("admin", "over"), "exempt");
        assertEquals(List.of(), authorizer.authorize(TestRequest.of(ApiKeys.FETCH, "alice"), List.of()));

        thresholds(1_000_000_000, 1_000_000);
        await("below the total, its own threshold does not matter", () -> !refused("alice", "own") && !refused("alice", "over"));
        thresholds(4_000_000, 4_000_000);
        await("a share of nothing", () -> refused("alice", "under"));
        callback.reconfigure(Map.of(KquotaConfig.MODE, "observe"));
        assertTrue(!refused("alice", "under"), "whenever the next look may be");
        callback.reconfigure(Map.of(KquotaConfig.MODE, "enforce"));
        await("enforced again", () -> refused("alice", "under"));
        assertThrows(NotEnoughReplicasException.class, () -> authorizer.authorize(TestRequest.of(ApiKeys.PRODUCE, "alice"),
            List.of(TestRequest.writeTo("own"))));

        // Two topics have gone: what is not led here is not refused here.
        callback.updateClusterMetadata(new Cluster("c", List.of(HERE), List.of(led("own", HERE)), Set.of(), Set.of()));
        await("no longer here", () -> !refused("alice", "over"));
        Files.delete(directory.resolve("topics/topics.json"));
        await("no thresholds", () -> !refused("alice", "own"));
    }

    /** As from a start while another broker is down, see KAFKA-20746. */
    @Test
    @Tag("D6")
    void aTopicsOwnThresholdHoldsThoughTheBrokerDoesNotPassOnItsLeaders() throws Exception {
        for (String topic : List.of("over", "own")) {
            append(topic, MARKED);
        }
        thresholds(4_000_000, 1_000_000);
        await("refused by its own threshold", () -> refused("alice", "own"));
        assertTrue(!refused("alice", "over"), "its share is not known");
        leaders();
        await("refused by its share", () -> refused("alice", "over"));
        assertTrue(refused("alice", "own"));
    }

    @Test
    @Tag("D5")
    @Tag("D8")
    void theObservedRateFallsByTheOneMinuteAverageAndItTakesInAgainBelowTheThreshold() throws Exception {
        leaders();
        append("over", MARKED);
        var meter = stats.topicStats("over").bytesInRate();
        await("the first tick", () -> meter.oneMinuteRate() > 0);
        double first = meter.oneMinuteRate();
        assertTicks(MARKED / 5.0, first);
        thresholds((long) (first * 0.8), 0);
        await("refused", () -> refused("alice", "over"));
        await("a tick", () -> meter.oneMinuteRate() < first);
        double next = meter.oneMinuteRate();
        assertTicks(first, next);
        await("taken in again", () -> !refused("alice", "over"));
    }

    /** Each five seconds without a byte leave e^(−5/60) of an average over a minute. */
    private static void assertTicks(double before, double after) {
        double ticks = Math.log(before / after) / (5.0 / 60);
        assertEquals(Math.rint(ticks), ticks, 1e-6, before + " B/s became " + after);
    }
}
