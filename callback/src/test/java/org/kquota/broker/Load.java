package org.kquota.broker;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** A producer that sends at a steady rate where it can, and notes when how many bytes were acknowledged. */
final class Load implements AutoCloseable {
    /** The most that one request holds, as Kafka's max.request.size is unless configured. */
    static final long LARGEST_REQUEST_BYTES = 1 << 20;

    private static final int RECORD_BYTES = 10_000;
    private static final int RECORDS_IN_TRANSACTION = 20;
    private static final Set<String> TOLD = Set.of("requests-in-flight", "record-retry-total", "record-error-total", "record-send-total",
        "produce-throttle-time-max", "buffer-available-bytes", "connection-count", "connection-close-total", "request-total", "response-total");

    private record Acknowledgement(String topic, long nanos) {
    }

    private final KafkaProducer<byte[], byte[]> producer;
    private final Thread thread;
    private final boolean transactional;
    private final double offeredRate;
    private final AtomicLong failed = new AtomicLong();
    private volatile Exception lastFailure;
    private final List<Acknowledgement> acknowledged = new ArrayList<>();
    private volatile boolean closed;

    Load(LiveBroker broker, String user, String clientId, String topic, double bytesPerSecond) {
        this(broker, user, clientId, topic, bytesPerSecond, Map.of());
    }

    /** With other settings of the producer; with a transactional id, a transaction for every few records. */
    Load(LiveBroker broker, String user, String clientId, String topic, double bytesPerSecond, Map<String, Object> settings) {
        this(broker, user, clientId, List.of(topic), bytesPerSecond, settings);
    }

    /** Writes to these topics in turn. */
    Load(LiveBroker broker, String user, String clientId, List<String> topics, double bytesPerSecond, Map<String, Object> settings) {
        topics.forEach(broker::lead);
        producer = broker.producer(user, clientId, settings);
        transactional = settings.containsKey("transactional.id");
        offeredRate = bytesPerSecond / topics.size();
        thread = new Thread(() -> run(topics, bytesPerSecond), "load-" + clientId);
        thread.start();
    }

    private void run(List<String> topics, double bytesPerSecond) {
        long gapNanos = (long) (RECORD_BYTES / bytesPerSecond * 1e9);
        long due = System.nanoTime();
        byte[] value = new byte[RECORD_BYTES];
        if (transactional) {
            producer.initTransactions();
        }
        for (int sent = 0; !closed; sent++) {
            if (transactional && sent % RECORDS_IN_TRANSACTION == 0) {
                nextTransaction(sent == 0);
            }
            send(topics.get(sent % topics.size()), value);
            due = Math.max(due + gapNanos, System.nanoTime() - 100_000_000L);
            long left = due - System.nanoTime();
            if (left > 0) {
                LockSupport.parkNanos(left);
            }
        }
    }

    private void nextTransaction(boolean first) {
        try {
            if (!first) {
                producer.commitTransaction();
            }
            producer.beginTransaction();
        } catch (KafkaException e) {
            // As in send.
            if (!closed) {
                failed(e);
                throw e;
            }
        }
    }

    private void send(String topic, byte[] value) {
        try {
            producer.send(new ProducerRecord<>(topic, value), (metadata, error) -> {
                if (error != null) {
                    failed(error);
                } else {
                    synchronized (acknowledged) {
                        acknowledged.add(new Acknowledgement(topic, System.nanoTime()));
                    }
                }
            });
        } catch (KafkaException e) {
            // A producer that is held blocks here, and close() ends it there.
            if (!closed) {
                failed(e);
                throw e;
            }
        }
    }

    private void failed(Exception failure) {
        lastFailure = failure;
        failed.incrementAndGet();
    }

    /** The figures for the message of a failed expectation. */
    String story() {
        StringBuilder story = new StringBuilder(thread.getName()).append(thread.isAlive() ? "" : " has ended");
        story.append(", failed ").append(failed.get()).append(", the last by ").append(lastFailure);
        synchronized (acknowledged) {
            long last = acknowledged.isEmpty() ? 0 : acknowledged.get(acknowledged.size() - 1).nanos;
            story.append(", acknowledged ").append(acknowledged.size()).append(", the last ").append((System.nanoTime() - last) / 1e9).append(" s ago");
        }
        producer.metrics().forEach((name, metric) -> {
            if (name.group().equals("producer-metrics") && TOLD.contains(name.name())) {
                story.append(", ").append(name.name()).append(' ').append(metric.metricValue());
            }
        });
        for (StackTraceElement at : thread.getStackTrace()) {
            story.append("\n    at ").append(at);
        }
        return story.toString();
    }

    long failed() {
        return failed.get();
    }

    /** Bytes per second that it sends to each of its topics, where it can. */
    double offeredRate() {
        return offeredRate;
    }

    /** Bytes acknowledged between two moments of System.nanoTime(). */
    long bytes(long fromNanos, long toNanos) {
        synchronized (acknowledged) {
            return acknowledged.stream().filter(ack -> ack.nanos - fromNanos >= 0 && ack.nanos - toNanos < 0).count() * RECORD_BYTES;
        }
    }

    /** Those of one of its topics. */
    long bytes(String topic, long fromNanos, long toNanos) {
        synchronized (acknowledged) {
            return acknowledged.stream().filter(ack -> ack.topic.equals(topic) && ack.nanos - fromNanos >= 0 && ack.nanos - toNanos < 0).count() * RECORD_BYTES;
        }
    }

    /** The value of one of the producer's own metrics. */
    double metric(String name) {
        return producer.metrics().entrySet().stream().filter(entry -> entry.getKey().group().equals("producer-metrics") && entry.getKey().name().equals(name))
            .mapToDouble(entry -> ((Number) entry.getValue().metricValue()).doubleValue()).max().orElseThrow();
    }

    /** Bytes per second acknowledged between two moments. */
    double rate(long fromNanos, long toNanos) {
        return bytes(fromNanos, toNanos) / ((toNanos - fromNanos) / 1e9);
    }

    /** The longest time without an acknowledgement between two moments, in seconds. */
    double longestSilence(long fromNanos, long toNanos) {
        long longest = 0;
        long last = fromNanos;
        synchronized (acknowledged) {
            for (Acknowledgement ack : acknowledged) {
                long at = ack.nanos;
                if (at - fromNanos >= 0 && at - toNanos < 0) {
                    longest = Math.max(longest, at - last);
                    last = at;
                }
            }
        }
        return Math.max(longest, toNanos - last) / 1e9;
    }

    @Override
    public void close() {
        closed = true;
        thread.interrupt();
        producer.close(Duration.ZERO);
        try {
            thread.join(5000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
