package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.kquota.applied.AppliedState.GovernorFigures;
import org.kquota.decision.State;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Many small clients of a real broker in THROTTLE without the fence: each has a limit of its own. */
class LiveSmallClientsTest {
    private static final double MB = 1e6;
    private static final long SECOND = 1_000_000_000L;
    private static final int SMALL = 40;
    private static final double SMALL_RATE = 0.1 * MB;
    private static final double LARGE_RATE = 5 * MB;
    private static final double FACTOR = 0.2;
    private static final double MAX_MUTE_SECONDS = 10;

    @TempDir
    private Path directory;

    @ParameterizedTest
    @ValueSource(ints = {3, 11})
    @Tag("long")
    @Tag("A7")
    void manySmallClientsComeToTheFactorEachByItsOwnLimitAndNoneIsSilentForLong(int windowSeconds) throws Exception {
        List<Load> small = new ArrayList<>();
        try (LiveBroker broker = new LiveBroker(directory, Map.of("quota.window.num", String.valueOf(windowSeconds)))) {
            broker.decide("OPEN", 1, "enforce", 600_000);
            broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN && applied.lost() == null);
            long started = System.nanoTime();
            for (int i = 0; i < SMALL; i++) {
                small.add(new Load(broker, "alice", "small-" + i, "small", SMALL_RATE));
            }
            try (Load large = new Load(broker, "bob", "large", "large", LARGE_RATE)) {
                for (Load load : small) {
                    LiveBroker.await("all producers produce", () -> load.bytes(started, System.nanoTime()) > 0);
                }
                // Until every baseline is an average over its ten seconds, and Kafka's window is full.
                Thread.sleep(1000 * (11 + windowSeconds));
                long throttled = System.nanoTime();
                double smallBefore = rate(small, throttled - 10 * SECOND, throttled);
                double largeBefore = large.rate(throttled - 10 * SECOND, throttled);
                broker.decide("THROTTLE", FACTOR, "enforce", 600_000);
                // The first mutes, and what is in the window then.
                Thread.sleep(1000 * ((int) MAX_MUTE_SECONDS + 2 * windowSeconds));
                long settled = System.nanoTime();
                Thread.sleep(20_000);
                long end = System.nanoTime();
                GovernorFigures figures = broker.applied().governor();
                assertNotNull(figures.poolLimitByteRate(), "they are held by limits: " + figures);
                assertEquals(1, figures.baselineByteRate() / (smallBefore + largeBefore), 0.25, "the baseline, of the rate before; " + figures);
                double ratio = rate(small, settled, end) / (FACTOR * smallBefore);
                double largeRatio = large.rate(settled, end) / (FACTOR * largeBefore);
                double silence = small.stream().mapToDouble(load -> load.longestSilence(throttled, end)).max().orElseThrow();
                System.out.printf("W = %d s: %d clients of %.1f MB/s came to %.2f of their target together, one of %.0f MB/s to %.2f of its own; "
                    + "the longest silence was %.1f s%n", windowSeconds, SMALL, SMALL_RATE / MB, ratio, LARGE_RATE / MB, largeRatio, silence);
                assertTrue(ratio > 0.6 && ratio < 1.5, "of their target: " + ratio + "; " + figures);
                assertEquals(1, largeRatio, 0.4, "and the large one has its own; " + figures);
                // A half more for a machine that is busy.
                assertTrue(silence < 1.5 * MAX_MUTE_SECONDS + 1, "silent for " + silence + " s");
                broker.decide("OPEN", 1, "enforce", 600_000);
                long released = System.nanoTime();
                for (Load load : small) {
                    LiveBroker.await("all producers have their own rate again",
                        () -> load.bytes(released, System.nanoTime()) > SMALL_RATE);
                }
                assertEquals(0, large.failed() + small.stream().mapToLong(Load::failed).sum());
            }
        } finally {
            small.forEach(Load::close);
        }
    }

    private static double rate(List<Load> loads, long fromNanos, long toNanos) {
        return loads.stream().mapToDouble(load -> load.rate(fromNanos, toNanos)).sum();
    }
}
