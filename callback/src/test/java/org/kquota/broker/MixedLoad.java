package org.kquota.broker;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.InterruptException;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** One producer that writes to the topics {@code full} and {@code healthy}, from a thread each, and notes what the healthy one's records waited for. */
final class MixedLoad implements AutoCloseable {
    static final int RECORD_BYTES = 1_000;

    private record Acknowledged(long sentNanos, long nanos) {
    }

    private final KafkaProducer<byte[], byte[]> producer;
    private final List<Thread> threads;
    private final ConcurrentLinkedQueue<Acknowledged> healthy = new ConcurrentLinkedQueue<>();
    private final AtomicLong full = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private volatile boolean closed;

    /** Rates are in bytes per second; 0 is flat out. */
    MixedLoad(LiveBroker broker, double fullRate, double healthyRate, Map<String, Object> settings) {
        producer = broker.producer("alice", "mixed", settings);
        threads = List.of(new Thread(() -> run("full", fullRate), "full"), new Thread(() -> run("healthy", healthyRate), "healthy"));
    }

    void start() {
        threads.forEach(Thread::start);
    }

    private void run(String topic, double rate) {
        byte[] value = new byte[RECORD_BYTES];
        long started = System.nanoTime();
        for (long sent = 1; !closed; sent++) {
            long at = System.nanoTime();
            try {
                producer.send(new ProducerRecord<>(topic, value), (metadata, error) -> note(topic, at, error));
            } catch (InterruptException | IllegalStateException e) {
                return; // closed while it waited for room
            }
            if (rate > 0) {
                LockSupport.parkNanos((long) (started + sent * RECORD_BYTES / rate * 1e9 - System.nanoTime()));
            }
        }
    }

    private void note(String topic, long sentNanos, Exception error) {
        if (error != null) {
            failed.incrementAndGet();
        } else if (topic.equals("full")) {
            full.incrementAndGet();
        } else {
            healthy.add(new Acknowledged(sentNanos, System.nanoTime()));
        }
    }

    long failed() {
        return failed.get();
    }

    /** Records of the full topic that were acknowledged. */
    long full() {
        return full.get();
    }

    /** Bytes per second acknowledged of the healthy topic between two moments of System.nanoTime(). */
    double healthyRate(long fromNanos, long toNanos) {
        return latencies(fromNanos, toNanos).length * (double) RECORD_BYTES / ((toNanos - fromNanos) / 1e9);
    }

    /** From send to acknowledgement, in milliseconds: that share of the healthy topic's records was as quick. */
    double latency(double ratio, long fromNanos, long toNanos) {
        long[] sorted = latencies(fromNanos, toNanos);
        return sorted.length == 0 ? Double.NaN : sorted[(int) (ratio * (sorted.length - 1))] / 1e6;
    }

    private long[] latencies(long fromNanos, long toNanos) {
        long[] found = healthy.stream().filter(ack -> ack.nanos - fromNanos >= 0 && ack.nanos - toNanos < 0).mapToLong(ack -> ack.nanos - ack.sentNanos).toArray();
        Arrays.sort(found);
        return found;
    }

    @Override
    public void close() {
        closed = true;
        threads.forEach(Thread::interrupt);
        producer.close(Duration.ZERO);
    }
}
