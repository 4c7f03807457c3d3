import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * A Java producer that sends at a steady rate to each of its partitions until its input ends. Ten times a second it prints its
 * results: bytes delivered, records failed, the longest and the average delay in milliseconds.
 *
 * <pre>PacedProducer BOOTSTRAP CLIENT_ID TOPIC PARTITIONS RECORD_BYTES BYTES_PER_SECOND</pre>
 */
public final class PacedProducer {
    private static final int QUEUED_RECORDS = 30;
    private static final long PRINT_NANOS = 100_000_000L;
    private static final AtomicLong DELIVERED_BYTES = new AtomicLong();
    private static final AtomicLong FAILED = new AtomicLong();

    private PacedProducer() {
    }

    public static void main(String[] arguments) throws Exception {
        int[] partitions = java.util.Arrays.stream(arguments[3].split(",")).mapToInt(Integer::parseInt).toArray();
        byte[] value = new byte[Integer.parseInt(arguments[4])];
        long gapNanos = (long) (value.length / Double.parseDouble(arguments[5]) * 1e9);
        // Records that do not fit are left out, so that the backlog, and with it a mute, stays short. Each partition has a queue of its
        // own: of one for all, a partition whose broker is muted would take what the others need.
        Semaphore[] queues = java.util.Arrays.stream(partitions).mapToObj(partition -> new Semaphore(QUEUED_RECORDS)).toArray(Semaphore[]::new);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", arguments[0], "client.id", arguments[1], "linger.ms", 5, "enable.metrics.push", false),
                new ByteArraySerializer(), new ByteArraySerializer())) {
            long due = System.nanoTime();
            long printed = due;
            while (System.in.available() == 0) {
                for (int i = 0; i < partitions.length; i++) {
                    Semaphore queue = queues[i];
                    if (queue.tryAcquire()) {
                        producer.send(new ProducerRecord<>(arguments[2], partitions[i], null, value), (metadata, error) -> {
                            queue.release();
                            if (error == null) {
                                DELIVERED_BYTES.addAndGet(value.length);
                            } else {
                                FAILED.incrementAndGet();
                            }
                        });
                    }
                }
                if (System.nanoTime() - printed > PRINT_NANOS) {
                    printed = System.nanoTime();
                    print(producer);
                }
                due = Math.max(due + gapNanos, System.nanoTime() - 500_000_000L);
                LockSupport.parkNanos(due - System.nanoTime());
            }
            producer.flush();
            print(producer);
            Runtime.getRuntime().halt(0);
        }
    }

    private static void print(KafkaProducer<byte[], byte[]> producer) {
        System.out.printf(Locale.ROOT, "%d %d %.3f %.3f%n", DELIVERED_BYTES.get(), FAILED.get(),
            milliseconds(producer, "produce-throttle-time-max"), milliseconds(producer, "produce-throttle-time-avg"));
        System.out.flush();
    }

    private static double milliseconds(KafkaProducer<byte[], byte[]> producer, String metric) {
        return producer.metrics().entrySet().stream().filter(entry -> entry.getKey().name().equals(metric))
            .mapToDouble(entry -> ((Number) entry.getValue().metricValue()).doubleValue()).filter(value -> !Double.isNaN(value)).max().orElse(0);
    }
}
