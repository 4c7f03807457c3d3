package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.applied.AppliedState.Mechanism;
import org.kquota.decision.State;

import java.nio.file.Path;
import java.util.Map;

class LiveBrokerTest {
    private static final double MB = 1e6;

    @TempDir
    private static Path directory;
    private static LiveBroker broker;

    @BeforeAll
    static void start() throws Exception {
        broker = new LiveBroker(directory, Map.of());
    }

    @AfterAll
    static void stop() {
        if (broker != null) {
            broker.close();
        }
    }

    @BeforeEach
    void open() throws Exception {
        broker.decide("OPEN", 1);
        broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN && applied.lost() == null);
    }

    @Test
    @Tag("F28")
    void aPauseStopsProducersAndEndsAsPromptlyAsPromised() throws Exception {
        try (Load load = new Load(broker, "alice", "app", "paused", 5 * MB);
             Load agent = new Load(broker, LiveBroker.AGENT, "kquota-1-publish", "usage", MB)) {
            Thread.sleep(8000);
            long opened = System.nanoTime() - 4_000_000_000L;
            long paused = System.nanoTime();
            double before = load.rate(opened, paused);
            broker.decide("PAUSE", 0);
            broker.awaitApplied("PAUSE by the governor", applied -> applied.mechanism() == Mechanism.GOVERNOR);
            for (int i = 0; i < 15; i++) {
                Thread.sleep(1000);
                long n = System.nanoTime();
                System.out.printf("%d: %.0f B/s, %s%n", i, load.rate(n - 1_000_000_000L, n), broker.applied().governor());
            }
            long released = System.nanoTime();
            broker.decide("OPEN", 1);
            Thread.sleep(7000);
            long end = System.nanoTime();
            double silence = load.longestSilence(released, end);
            System.out.printf("before %.0f during %.0f agent %.0f silence after %.2f leak %d%n", before, load.rate(paused, released),
                agent.rate(paused, released), silence, load.bytes(paused, released));
            assertTrue(load.rate(paused, released) < 0.2 * before);
            assertTrue(agent.rate(paused, released) > 0.8 * agent.rate(opened, paused));
            assertTrue(silence < 0.6 * (released - paused) / 1e9);
            assertEquals(0, load.failed());
        }
    }
}
