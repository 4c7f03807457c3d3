import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Java producers, one connection and one topic each, until SIGTERM; then prints one JSON object: what they were told.
 *
 * <pre>JavaLoad BOOTSTRAP TOPIC_PREFIX CONNECTIONS RECORD_BYTES BYTES_PER_SECOND_EACH [name=value]...</pre>
 */
public final class JavaLoad {
    private static final AtomicLong ACKNOWLEDGED = new AtomicLong();
    private static final AtomicLong FAILED = new AtomicLong();
    private static final ConcurrentSkipListSet<String> ERRORS = new ConcurrentSkipListSet<>();
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
        byte[] value = new byte[Integer.parseInt(arguments[3])];
        new Random(0).nextBytes(value);
        double rate = Double.parseDouble(arguments[4]);
        long gapNanos = rate == 0 ? 0 : (long) (value.length / rate * 1e9);
        for (int i = 1; i <= Integer.parseInt(arguments[2]); i++) {
            String name = arguments[1] + i;
            Map<String, Object> own = new HashMap<>(settings);
            own.put("client.id", name);
            KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(own, new ByteArraySerializer(), new ByteArraySerializer());
            new Thread(() -> produce(producer, name, value, gapNanos), name).start();
        }
    }

    private static void produce(KafkaProducer<byte[], byte[]> producer, String topic, byte[] value, long gapNanos) {
        long due = System.nanoTime();
        while (!stopped) {
            producer.send(new ProducerRecord<>(topic, value), (metadata, error) -> count(error));
            // What could not be sent in time is not owed: an application's demand does not grow while it is held.
            due = Math.max(due + gapNanos, System.nanoTime() - 100_000_000L);
            long left = due - System.nanoTime();
            if (left > 0) {
                LockSupport.parkNanos(left);
            }
        }
    }

    private static void count(Exception error) {
        if (error == null) {
            ACKNOWLEDGED.incrementAndGet();
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
        System.out.printf("{\"acknowledged_records\": %d, \"failed_records\": %d, \"errors\": [%s]}%n",
            ACKNOWLEDGED.get(), FAILED.get(), errors);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
