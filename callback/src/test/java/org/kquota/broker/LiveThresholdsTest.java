package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ExecutionException;

import javax.management.InstanceNotFoundException;
import javax.management.ObjectName;

/** Thresholds of topics on a real broker, by the broker's own meters, with Java producers. */
class LiveThresholdsTest {
    private static final double KB = 1e3;
    private static final double RATE = 800 * KB;
    private static final long SECOND = 1_000_000_000L;

    @TempDir
    private Path directory;
    private LiveBroker broker;

    @BeforeEach
    void start() throws Exception {
        Files.createDirectory(directory.resolve("topics"), PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwxr-xr-x")));
        broker = new LiveBroker(directory, Map.of(
            "authorizer.class.name", LiveBroker.AUTHORIZER,
            "kquota.fence.authorizer.class", "none",
            "kquota.quota.groups", "ingest",
            "kquota.quota.group.ingest.principals", "User:alice",
            "kquota.quota.group.ingest.produce", "1G",
            "kquota.topics.file", file().toString()));
        broker.decide("OPEN", 1, "enforce", 3_600_000);
    }

    @AfterEach
    void stop() {
        if (broker != null) {
            broker.close();
        }
    }

    private Path file() {
        return directory.resolve("topics/topics.json");
    }

    private void thresholds(double total, double ofOver) throws IOException {
        write(String.format(Locale.ROOT, "{\"schema_version\": 1, \"total.bytes.in.per.sec.threshold\": %.0f, "
            + "\"topics\": {\"over\": {\"bytes.in.per.sec.threshold\": %.0f}}}", total, ofOver));
    }

    private void write(String text) throws IOException {
        Path temporary = file().resolveSibling("temporary");
        Files.writeString(temporary, text);
        Files.setPosixFilePermissions(temporary, PosixFilePermissions.fromString("rw-r--r--"));
        Files.move(temporary, file(), StandardCopyOption.ATOMIC_MOVE);
    }

    private double meter(String name, String attribute) throws Exception {
        return broker.jmx(connection -> {
            try {
                return ((Number) connection.getAttribute(new ObjectName("kafka.server:type=BrokerTopicMetrics,name=" + name), attribute)).doubleValue();
            } catch (InstanceNotFoundException e) {
                return 0.0;
            }
        });
    }

    /** A metric of the plug-in, with these tags in addition to Kafka's. */
    private double plugIn(String metric, String tags) throws Exception {
        return broker.jmx(connection -> ((Number) connection.getAttribute(
            new ObjectName("kafka.server:type=plugins,config=client.quota.callback.class,class=KquotaCallback,role=broker" + tags), metric)).doubleValue());
    }

    /** Whether a line of the broker's log has all of these. */
    private boolean logged(String... texts) {
        try {
            return broker.log().lines().anyMatch(line -> java.util.Arrays.stream(texts).allMatch(line::contains));
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private boolean rateIsAbove(double bytesPerSecond, String ofTopic) {
        try {
            return meter("BytesInPerSec" + ofTopic, "OneMinuteRate") > bytesPerSecond;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private void shared(double total) throws IOException {
        write(String.format(Locale.ROOT, "{\"schema_version\": 1, \"total.bytes.in.per.sec.threshold\": %.0f}", total));
    }

    /** Waits until the broker's meter, which is slow to rise, is above this threshold, and puts the threshold in force. */
    private void close(double total, double own) throws Exception {
        LiveBroker.await("seen by the broker's meter", () -> rateIsAbove(1.2 * total, ""));
        thresholds(total, own);
        LiveBroker.await("closed", () -> logged("topic over takes nothing in from now on"));
        LiveBroker.atRest("what was authorized before is appended", () -> meter("BytesInPerSec,topic=over", "Count"));
    }

    @Test
    @Tag("D1")
    @Tag("D2")
    @Tag("D3")
    @Tag("D4")
    @Tag("D6")
    @Tag("D7")
    @Tag("D9")
    void aTopicOverItsThresholdTakesNothingInAndTheOthersGoOn() throws Exception {
        double own = 0.05 * RATE;
        double total = 0.1 * RATE;
        try (Load over = new Load(broker, "alice", "a", "over", RATE);
             Load under = new Load(broker, "bob", "b", "under", RATE / 80)) {
            LiveBroker.await("seen by the meter", () -> rateIsAbove(2 * own, ",topic=over"));

            thresholds(total, 1.1 * total);
            LiveBroker.await("rejected", () -> logged("allowed is at most the total"));
            long flowing = System.nanoTime();
            Thread.sleep(1500);
            assertTrue(over.bytes(flowing, System.nanoTime()) > 0, "thresholds that do not add up hold no client");

            thresholds(10 * RATE, own);
            LiveBroker.await("in force", () -> logged("thresholds of bytes in are in force"));
            long roomy = System.nanoTime();
            Thread.sleep(2500);
            assertTrue(over.bytes(roomy, System.nanoTime()) > 0, "above its own threshold alone, it passes");

            close(total, own);
            long closed = System.nanoTime();
            double meteredBefore = meter("BytesInPerSec,topic=over", "Count");
            double meteredOfUnder = meter("BytesInPerSec,topic=under", "Count");
            Thread.sleep(3000);
            double metered = meter("BytesInPerSec,topic=over", "Count") - meteredBefore;
            long end = System.nanoTime();
            assertEquals(0, over.bytes(closed, end), "nothing is appended");
            assertEquals(0, metered, "and nothing metered");
            assertTrue(under.bytes(closed, end) > 0, "the other topic goes on");
            assertTrue(meter("BytesInPerSec,topic=under", "Count") > meteredOfUnder, "and is metered");
            if (LiveBroker.HAS_METRICS) {
                assertTrue(plugIn("threshold-refusals-total", "") > 0);
                assertEquals(1, plugIn("topics-over-threshold", ""));
            }

            // Without a threshold of its own it has half of the total, and a quarter when there are two more topics.
            shared(total);
            LiveBroker.await("half", () -> logged("produce requests to topic over were refused", String.format(Locale.ROOT, "threshold of %.0f,", total / 2)));
            try (Admin admin = broker.admin()) {
                admin.createTopics(List.of(new NewTopic("third", 1, (short) 1), new NewTopic("fourth", 1, (short) 1))).all().get();
            }
            LiveBroker.await("a quarter", () -> logged("produce requests to topic over were refused", String.format(Locale.ROOT, "threshold of %.0f,", total / 4)));

            thresholds(10 * RATE, own);
            LiveBroker.await("there is room", () -> over.bytes(end, System.nanoTime()) > 0);
            assertTrue(logged("topic over takes in again"));
            assertEquals(0, over.failed() + under.failed());
        }
        broker.awaitApplied("the refused client", applied -> applied.clients().refused().stream()
            .anyMatch(refused -> refused.principal().equals("User:alice") && refused.clientId().equals("a") && refused.requests() > 0)
            && applied.clients().groups().get(0).refusedRequests() > 0);
        if (LiveBroker.HAS_METRICS) {
            assertTrue(plugIn("client-refusals-total", ",principal=\"User:alice\",client-id=a") > 0);
            assertTrue(plugIn("group-refusals-total", ",group=ingest") > 0);
        }
    }

    @Test
    @Tag("D8")
    @Tag("D7")
    @Tag("long")
    void itTakesInAgainByItselfWhenTheObservedRateIsDown() throws Exception {
        try (Load over = new Load(broker, "alice", "a", "over", RATE)) {
            // The broker's meter shows at its first look all that has come in until then, and is slow to move from then on.
            LiveBroker.await("seen by the broker's meter", () -> rateIsAbove(0.3 * RATE, ""));
            close(0.8 * meter("BytesInPerSec", "OneMinuteRate"), 0.2 * RATE);
            long closed = System.nanoTime();
            LiveBroker.await("below its threshold again", () -> over.bytes(closed, System.nanoTime()) > 0);
            assertTrue(logged("topic over takes in again"));
            assertEquals(0, over.failed());
        }
    }

    @Test
    @Tag("long")
    @Tag("D9")
    void whatIsTooLargeDoesNotCountAsBytesInAndIsMeteredApart() throws Exception {
        try (Admin admin = broker.admin(); KafkaProducer<byte[], byte[]> producer = broker.producer("alice", "a")) {
            admin.createTopics(List.of(new NewTopic("small", 1, (short) 1).configs(Map.of("max.message.bytes", "1000")))).all().get();
            ExecutionException refused = assertThrows(ExecutionException.class, () -> producer.send(new ProducerRecord<>("small", new byte[50_000])).get());
            assertInstanceOf(RecordTooLargeException.class, refused.getCause());
            assertEquals(0, meter("BytesInPerSec,topic=small", "Count"));
            assertTrue(meter("BytesRejectedPerSec,topic=small", "Count") >= 50_000);
            producer.send(new ProducerRecord<>("small", new byte[100])).get();
            assertTrue(meter("BytesInPerSec,topic=small", "Count") >= 100);
        }
    }

    @Test
    @Tag("D5")
    @Tag("long")
    void theObservedRateIsAOneMinuteAverageThatMovesEveryFiveSeconds() throws Exception {
        try (Load load = new Load(broker, "alice", "a", "over", RATE)) {
            LiveBroker.await("seen by the meter", () -> rateIsAbove(RATE / 2, ",topic=over"));
            assertEquals(0, load.failed());
        }
        record Step(long nanos, double rate) {
        }
        List<Step> steps = broker.jmx(connection -> {
            ObjectName name = new ObjectName("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=over");
            List<Step> seen = new ArrayList<>();
            long end = System.nanoTime() + 90 * SECOND;
            while (seen.size() < 7 && System.nanoTime() < end) {
                double rate = ((Number) connection.getAttribute(name, "OneMinuteRate")).doubleValue();
                if (seen.isEmpty() || seen.get(seen.size() - 1).rate() != rate) {
                    seen.add(new Step(System.nanoTime(), rate));
                }
                Thread.sleep(50);
            }
            return seen;
        });
        assertEquals(7, steps.size(), steps.toString());
        // The first step may hold the load's last bytes; from then on nothing comes in.
        for (int i = 3; i < steps.size(); i++) {
            assertEquals(Math.exp(-5.0 / 60), steps.get(i).rate() / steps.get(i - 1).rate(), 1e-6, steps.toString());
        }
        double seconds = (steps.get(6).nanos() - steps.get(2).nanos()) / 1e9 / 4;
        assertTrue(seconds > 4 && seconds < 6, "moves every " + seconds + " s");
    }
}
