package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.kquota.applied.AppliedState;
import org.kquota.applied.AppliedState.Mechanism;
import org.kquota.decision.State;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import javax.management.ObjectName;

/** THROTTLE by admission at the fence of a real broker, with real producers. */
class LiveAdmissionTest {
    private static final double MB = 1e6;
    private static final long SECOND = 1_000_000_000L;
    /** Kafka's default. */
    private static final double BATCH_BYTES = 16_384;
    private static final Map<String, String> FENCED = Map.of("authorizer.class.name", LiveBroker.AUTHORIZER, "kquota.fence.authorizer.class", "none");

    @TempDir
    private Path directory;
    private final List<Load> loads = new ArrayList<>();

    private static double rate(List<Load> loads, long fromNanos, long toNanos) {
        return loads.stream().mapToDouble(load -> load.rate(fromNanos, toNanos)).sum();
    }

    /** Jain's index of what each got of its rate before: 1 where all got the same share. */
    private static double fairness(List<Load> loads, long before, long throttled, long from, long to) {
        double[] shares = loads.stream().mapToDouble(load -> load.rate(from, to) / load.rate(before, throttled)).toArray();
        double sum = 0;
        double squares = 0;
        for (double share : shares) {
            sum += share;
            squares += share * share;
        }
        return sum * sum / (shares.length * squares);
    }

    private static double silence(List<Load> loads, long from, long to) {
        return loads.stream().mapToDouble(load -> load.longestSilence(from, to)).max().orElseThrow();
    }

    private static void open(LiveBroker broker) throws Exception {
        broker.decide("OPEN", 1, "enforce", 600_000);
        broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN && applied.lost() == null);
    }

    private static AppliedState throttle(LiveBroker broker, double factor) throws Exception {
        broker.decide("THROTTLE", factor, "enforce", 600_000);
        return broker.awaitApplied("THROTTLE by the fence", applied -> applied.state() == State.THROTTLE && applied.mechanism() == Mechanism.FENCE);
    }

    private static double appended(LiveBroker broker, String topic) {
        try {
            return broker.jmx(connection -> ((Number) connection.getAttribute(
                new ObjectName("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=" + topic), "Count")).doubleValue());
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private void awaitProducing(double bytes) throws Exception {
        long started = System.nanoTime();
        for (Load load : loads) {
            LiveBroker.await("every client produces", () -> load.bytes(started, System.nanoTime()) > bytes, load::story);
        }
    }

    /** Targets at which delays of at most 5 s let in many times as much: each connection would land a request per delay. */
    @ParameterizedTest
    @CsvSource({"20, 0.05, 0.1", "40, 0.1, 0.05"})
    @Tag("long")
    @Tag("A7")
    void manySmallClientsComeToASmallTargetAndEachHasItsTurns(int clients, double megabytes, double factor) throws Exception {
        try (LiveBroker broker = new LiveBroker(directory, FENCED)) {
            open(broker);
            for (int i = 0; i < clients; i++) {
                loads.add(new Load(broker, "alice", "app-" + i, "small", megabytes * MB));
            }
            awaitProducing(2 * megabytes * MB);
            Thread.sleep(20_000);
            long throttled = System.nanoTime();
            long before = throttled - 10 * SECOND;
            double target = factor * rate(loads, before, throttled);
            throttle(broker, factor);
            Thread.sleep(10_000);
            long settled = System.nanoTime();
            Thread.sleep(60_000);
            long end = System.nanoTime();
            double ratio = rate(loads, settled, end) / target;
            double fairness = fairness(loads, before, throttled, settled, end);
            double silence = silence(loads, throttled, end);
            double round = clients * BATCH_BYTES / target;
            System.out.printf("%d clients of %.2f MB/s at %.2f: mean / target %.2f, Jain's index %.3f, longest silence %.1f s, a round %.1f s%n", clients, megabytes,
                factor, ratio, fairness, silence, round);
            assertEquals(1, ratio, 0.15, "of the target");
            assertTrue(fairness > 0.9, "fair: " + fairness);
            assertTrue(silence < 3 * Math.max(2, round), "silent for " + silence + " s where a round takes " + round);
            assertEquals(0, loads.stream().mapToLong(Load::failed).sum(), "no record may fail");
        } finally {
            loads.forEach(Load::close);
        }
    }

    @Test
    @Tag("A7")
    void theTotalIsTheTargetSharesAreThoseOfBeforeAndTheReleaseIsPrompt() throws Exception {
        double factor = 0.3;
        try (LiveBroker broker = new LiveBroker(directory, FENCED)) {
            open(broker);
            for (int i = 0; i < 5; i++) {
                loads.add(new Load(broker, "alice", "small-" + i, "small", 0.2 * MB));
            }
            loads.add(new Load(broker, "bob", "large", "large", 2 * MB));
            try (Load exempt = new Load(broker, LiveBroker.AGENT, "kquota-1-publish", "usage", 0.3 * MB);
                 Load unanswered = new Load(broker, "carol", "unanswered", "unanswered", MB, Map.of("acks", "0", "enable.idempotence", false))) {
                awaitProducing(0.2 * MB);
                LiveBroker.await("who wants no answers produces", () -> unanswered.bytes(0, System.nanoTime()) > 0.2 * MB, unanswered::story);
                // Until every baseline is an average over its ten seconds.
                Thread.sleep(14_000);
                long throttled = System.nanoTime();
                long before = throttled - 8 * SECOND;
                double rateBefore = rate(loads, before, throttled) + unanswered.rate(before, throttled);
                throttle(broker, factor);
                Thread.sleep(4_000);
                long settled = System.nanoTime();
                double unansweredBefore = appended(broker, "unanswered");
                Thread.sleep(10_000);
                double unansweredRate = (appended(broker, "unanswered") - unansweredBefore) / ((System.nanoTime() - settled) / 1e9);
                long end = System.nanoTime();
                double ratio = (rate(loads, settled, end) + unansweredRate) / (factor * rateBefore);
                double fairness = fairness(loads, before, throttled, settled, end);
                double silence = silence(loads, throttled, end);
                double flowing = exempt.rate(settled, end) / exempt.rate(before, throttled);
                AppliedState applied = broker.applied();
                System.out.printf("mean / target %.2f, Jain's index %.3f, longest silence %.1f s, exempt at %.2f of its rate, acks=0 at %.0f B/s, refused %d%n", ratio,
                    fairness, silence, flowing, unansweredRate, applied.fence().refusals());
                assertEquals(1, ratio, 0.25, "of the target");
                assertTrue(fairness > 0.9, "fair: " + fairness);
                assertTrue(silence < 4, "silent for " + silence + " s");
                assertEquals(1, flowing, 0.3, "an exempt principal is not held");
                assertTrue(applied.fence().refusals() > 0);
                List<String> refused = applied.clients().refused().stream().map(client -> client.clientId()).toList();
                assertTrue(refused.contains("large"), "who was refused is reported: " + refused);
                assertTrue(refused.contains("unanswered"), "who wants no answers is refused like the others: " + refused);
                assertFalse(refused.contains("kquota-1-publish"), "and this one was not: " + refused);
                assertTrue(unansweredRate > 0 && unansweredRate < 0.5 * MB, "and has its turns: " + unansweredRate);
                assertEquals(0, unanswered.metric("produce-throttle-time-max"), "no delay holds it");

                broker.decide("OPEN", 1, "enforce", 600_000);
                long released = System.nanoTime();
                for (Load load : loads) {
                    LiveBroker.await("back", () -> load.bytes(released, System.nanoTime()) > 0, load::story);
                }
                double unansweredHeld = appended(broker, "unanswered");
                LiveBroker.await("back without answers", () -> appended(broker, "unanswered") > unansweredHeld, unanswered::story);
                double back = (System.nanoTime() - released) / 1e9;
                assertTrue(back < 3, "all were back after " + back + " s");
                assertEquals(0, exempt.failed() + unanswered.failed() + loads.stream().mapToLong(Load::failed).sum(), "no record may fail");
            }
        } finally {
            loads.forEach(Load::close);
        }
    }
}
