import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;

/**
 * Java producers, one connection and one topic each, until SIGTERM; then prints one JSON object: their results.
 *
 * <pre>JavaLoad BOOTSTRAP TOPIC_PREFIX CONNECTIONS RECORD_BYTES BYTES_PER_SECOND_EACH [name=value]...</pre>
 *
 * <p>Two settings are this program's own: with transactional=true each producer commits a transaction every half second; with also=PREFIX
 * it writes to a topic of that prefix, too, at the same rate.
 */
public final class JavaLoad {
    private static final AtomicLong ACKNOWLEDGED = new AtomicLong();
    private static final AtomicLong FAILED = new AtomicLong();
    private static final ConcurrentSkipListSet<String> ERRORS = new ConcurrentSkipListSet<>();
    private static final long TRANSACTION_NANOS = 500_000_000L;
    private static final long WARM_NANOS = 1_000_000_000L;
    private static final long BUCKET_NANOS = 100_000L;
    private static final AtomicLongArray LATENCIES = new AtomicLongArray(200_000);
    private static final long STARTED = System.nanoTime();
    private static volatile boolean stopped;

    private JavaLoad() {
    }

    public static void main(String[] arguments) {
        Runtime.getRuntime().addShutdownHook(new Thread(JavaLoad::report));
        Map<String, Object> settings = new HashMap<>();
        for (int i = 5; i < arguments.length; i++) {
            String[] setting = arguments[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        settings.put("bootstrap.servers", arguments[0]);
        boolean transactional = "true".equals(settings.remove("transactional"));
        Object also = settings.remove("also");
        byte[] value = new byte[Integer.parseInt(arguments[3])];
        new Random(0).nextBytes(value);
        double rate = Double.parseDouble(arguments[4]);
        long gapNanos = rate == 0 ? 0 : (long) (value.length / rate * 1e9);
        for (int i = 1; i <= Integer.parseInt(arguments[2]); i++) {
            String name = arguments[1] + i;
            Map<String, Object> own = new HashMap<>(settings);
            own.put("client.id", name);
            if (transactional) {
                own.put("transactional.id", name);
            }
            KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(own, new ByteArraySerializer(), new ByteArraySerializer());
            new Thread(() -> produce(producer, name, value, gapNanos, transactional), name).start();
            if (also != null) {
                String other = also + Integer.toString(i);
                new Thread(() -> produce(producer, other, value, gapNanos, false), other).start();
            }
        }
    }

    private static void produce(KafkaProducer<byte[], byte[]> producer, String topic, byte[] value, long gapNanos,
                                boolean transactional) {
        long due = System.nanoTime();
        long commitAt = due + TRANSACTION_NANOS;
        if (transactional) {
            producer.initTransactions();
            producer.beginTransaction();
        }
        while (!stopped) {
            if (transactional && System.nanoTime() >= commitAt) {
                nextTransaction(producer);
                commitAt = System.nanoTime() + TRANSACTION_NANOS;
            }
            long sent = System.nanoTime();
            producer.send(new ProducerRecord<>(topic, value), (metadata, error) -> count(error, sent));
            // Records that could not be sent in time are not owed: an application's demand does not grow while it is held.
            due = Math.max(due + gapNanos, System.nanoTime() - 100_000_000L);
            long left = due - System.nanoTime();
            if (left > 0) {
                LockSupport.parkNanos(left);
            }
        }
    }

    /** As an application does: commits, and aborts transactions that can't be committed. */
    private static void nextTransaction(KafkaProducer<byte[], byte[]> producer) {
        try {
            producer.commitTransaction();
        } catch (KafkaException e) {
            if (!stopped) {
                ERRORS.add(e.getClass().getSimpleName());
            }
            producer.abortTransaction();
        }
        producer.beginTransaction();
    }

    private static void count(Exception error, long sent) {
        long now = System.nanoTime();
        if (error == null) {
            ACKNOWLEDGED.incrementAndGet();
            if (now - STARTED > WARM_NANOS) {
                LATENCIES.incrementAndGet((int) Math.min((now - sent) / BUCKET_NANOS, LATENCIES.length() - 1));
            }
        } else if (!stopped) {
            FAILED.incrementAndGet();
            ERRORS.add(error.getClass().getSimpleName());
        }
    }

    private static void report() {
        stopped = true;
        StringBuilder errors = new StringBuilder();
        for (String error : ERRORS) {
            errors.append(errors.length() == 0 ? "" : ", ").append('"').append(error).append('"');
        }
        System.out.printf(Locale.ROOT, "{\"acknowledged_records\": %d, \"failed_records\": %d, \"errors\": [%s], "
            + "\"median_milliseconds\": %s, \"p99_milliseconds\": %s}%n",
            ACKNOWLEDGED.get(), FAILED.get(), errors, latencyMilliseconds(0.5), latencyMilliseconds(0.99));
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    /** From send to acknowledgement: that share of the records was as quick; null without any. */
    private static String latencyMilliseconds(double ratio) {
        long all = 0;
        for (int i = 0; i < LATENCIES.length(); i++) {
            all += LATENCIES.get(i);
        }
        long seen = 0;
        for (int i = 0; i < LATENCIES.length(); i++) {
            seen += LATENCIES.get(i);
            if (seen > 0 && seen >= ratio * all) {
                return String.format(Locale.ROOT, "%.1f", (i + 1) * BUCKET_NANOS / 1e6);
            }
        }
        return "null";
    }
}
