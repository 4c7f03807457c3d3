package org.kquota.broker;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.InterruptException;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** A producer that sends large requests for a third of a second, then drops its connection, connects again, and so on. */
final class Reconnecting implements AutoCloseable {
    static final int RECORD_BYTES = 100_000;
    private static final int RECORDS = 20;
    private static final long CONNECTED_MS = 300;

    private final AtomicLong landed = new AtomicLong();
    private final AtomicLong connections = new AtomicLong();
    private final Thread thread;
    private volatile boolean closed;

    Reconnecting(LiveBroker broker, String user, String topic) {
        thread = new Thread(() -> run(broker, user, topic), "reconnecting-" + user);
        thread.start();
    }

    private void run(LiveBroker broker, String user, String topic) {
        while (!closed) {
            // A request for each record.
            KafkaProducer<byte[], byte[]> producer = broker.producer(user, "reconnecting", Map.of("batch.size", 0, "acks", "1", "enable.idempotence", false,
                "max.block.ms", 10_000));
            try {
                producer.partitionsFor(topic);
                for (int i = 0; i < RECORDS; i++) {
                    producer.send(new ProducerRecord<>(topic, new byte[RECORD_BYTES]), (metadata, error) -> {
                        if (error == null) {
                            landed.incrementAndGet();
                        }
                    });
                }
                Thread.sleep(CONNECTED_MS);
            } catch (InterruptedException | InterruptException e) {
                // The end.
                return;
            } finally {
                Thread.interrupted();
                producer.close(Duration.ZERO);
                connections.incrementAndGet();
            }
        }
    }

    /** Requests that were acknowledged. */
    long landed() {
        return landed.get();
    }

    /** Connections that have come and gone. */
    long connections() {
        return connections.get();
    }

    @Override
    public void close() {
        closed = true;
        thread.interrupt();
        try {
            thread.join(20_000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
