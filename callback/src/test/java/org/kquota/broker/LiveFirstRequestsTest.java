package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.decision.State;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Producers that begin while the fence refuses some requests. Kafka takes any sequence number as a producer's first one in a partition: if the fence refused its first request and let
 * a later one through that was under way, the first would be out of order for ever.
 */
class LiveFirstRequestsTest {
    private static final double MB = 1e6;
    private static final int NEWCOMERS = 30;
    /** With Kafka's default, what all of them hold back on a slow machine would fill the heap. */
    private static final Map<String, Object> BUFFER = Map.of("buffer.memory", 4 << 20);

    @TempDir
    private Path directory;
    private final List<Load> loads = new ArrayList<>();

    @AfterEach
    void closeLoads() {
        loads.forEach(Load::close);
    }

    /**
     * The answers of the fence change within the round trip of a producer's first requests, again and again. Where other work keeps the broker from a
     * connection's next request for more than the 60 ms of ADR 0018, some are stuck: so it is a campaign, for a machine of its own.
     */
    @Test
    @Tag("long")
    void noProducerThatBeginsBetweenRefusalsIsStuck() throws Exception {
        try (LiveBroker broker = new LiveBroker(directory, LiveFenceTest.FENCED)) {
            broker.decide("OPEN", 1, "enforce", 600_000);
            broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN && applied.lost() == null);
            AtomicBoolean isOver = new AtomicBoolean();
            CompletableFuture<Void> flapping = CompletableFuture.runAsync(() -> flap(broker, isOver));
            for (int i = 0; i < NEWCOMERS; i++) {
                loads.add(new Load(broker, "alice", "new-" + i, "new-" + i, MB, BUFFER));
            }
            isOver.set(true);
            flapping.get(60, TimeUnit.SECONDS);
            long released = System.nanoTime();
            for (Load load : loads) {
                LiveBroker.await("every producer's records land", () -> load.bytes(released, System.nanoTime()) > 0.3 * MB, load::story);
            }
            loads.forEach(load -> assertEquals(0, load.failed(), load::story));
            assertTrue(broker.applied().fence().refusals() > NEWCOMERS, "the fence refused some requests");
        }
    }

    private static void flap(LiveBroker broker, AtomicBoolean isOver) {
        try {
            while (!isOver.get()) {
                broker.decide("PAUSE", 0, "enforce", 600_000);
                Thread.sleep(30);
                broker.decide("OPEN", 1, "enforce", 600_000);
                Thread.sleep(30);
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
