package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.internals.Sender;
import org.apache.kafka.common.errors.TimeoutException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.LogLines;
import org.kquota.decision.Scope;
import org.kquota.decision.State;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

/** A Java producer that writes to a paused topic and to a healthy one: docs/clients.md has the figures. */
@Tag("long")
class LiveMixedProducerTest {
    private static final int RECORD_BYTES = 1_000;
    private static final int BUFFER_BYTES = 2_000_000;
    private static final String REASON = "NOT_ENOUGH_REPLICAS. Error Message: kquota: topic full is on a disk that is too full; producers to it are paused";

    @TempDir
    private Path directory;

    private static void pause(LiveBroker broker) throws Exception {
        broker.decide("OPEN", 1, "enforce", 600_000);
        broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN && applied.lost() == null);
        try (Admin admin = broker.admin()) {
            admin.createTopics(List.of(new NewTopic("full", 1, (short) 1), new NewTopic("healthy", 1, (short) 1))).all().get();
        }
        broker.decideTopics("PAUSE", 0, "{\"full\": 0}");
        broker.awaitApplied("PAUSE for a topic", applied -> applied.scope() == Scope.TOPICS);
    }

    /** The buffer is shared: as soon as records of the paused topic fill it, those of others wait for room as well. */
    @Test
    void recordsOfAPausedTopicFillTheBufferThatAllTopicsShare() throws Exception {
        try (LiveBroker broker = new LiveBroker(directory, LiveFenceTest.FENCED)) {
            pause(broker);
            double pausedRate = 0.2e6;
            try (KafkaProducer<byte[], byte[]> producer = broker.producer("alice", "mixed", Map.of("buffer.memory", BUFFER_BYTES, "max.block.ms", 2_000))) {
                AtomicReference<Exception> blocked = new AtomicReference<>();
                AtomicReference<Exception> failed = new AtomicReference<>();
                long started = System.nanoTime();
                long healthy = 0;
                double seconds = 0;
                while (blocked.get() == null && seconds < 60) {
                    for (String topic : List.of("full", "healthy")) {
                        // After max.block.ms the callback gets the error, and send() returns.
                        producer.send(new ProducerRecord<>(topic, new byte[RECORD_BYTES]), (metadata, error) ->
                            (error instanceof TimeoutException ? blocked : failed).compareAndSet(null, error));
                    }
                    healthy++;
                    seconds = (System.nanoTime() - started) / 1e9;
                    LockSupport.parkNanos((long) (started + healthy * RECORD_BYTES / pausedRate * 1e9 - System.nanoTime()));
                }
                double filled = (double) healthy * RECORD_BYTES / BUFFER_BYTES;
                System.out.printf("send() waited after %.1f s, when %.2f of buffer.memory had gone to the paused topic: %s%n", seconds - 2, filled, blocked.get());
                assertEquals(1, filled, 0.25, "of the buffer");
                assertNull(failed.get());
                producer.close(Duration.ZERO);
            }
        }
    }

    @Test
    void theApplicationGetsATimeoutAndTheClientsLogHasTheReason() throws Exception {
        try (LiveBroker broker = new LiveBroker(directory, LiveFenceTest.FENCED); LogLines log = new LogLines(Sender.class)) {
            pause(broker);
            try (KafkaProducer<byte[], byte[]> producer = broker.producer("alice", "mixed", Map.of("delivery.timeout.ms", 4_000, "request.timeout.ms", 2_000))) {
                Future<?> sent = producer.send(new ProducerRecord<>("full", new byte[RECORD_BYTES]));
                ExecutionException failure = assertThrows(ExecutionException.class, sent::get);
                System.out.println("the application gets: " + failure.getCause());
                System.out.println("the client logs: " + log.lines());
                assertInstanceOf(TimeoutException.class, failure.getCause());
                assertTrue(log.lines().stream().anyMatch(line -> line.contains(REASON)), () -> "the reason is not in the log: " + log.lines());
            }
        }
    }
}
