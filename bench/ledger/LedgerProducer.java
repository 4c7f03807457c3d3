import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.io.FileWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.CRC32;

/**
 * A producer that keeps a book of the answers to each record, until SIGTERM. record.py and book.py define both.
 *
 * <pre>LedgerProducer BOOTSTRAP TOPIC PARTITIONS BOOK RECORD_BYTES BYTES_PER_SECOND TRANSACTIONS [name=value]...</pre>
 *
 * <p>The topic's name is the producer's, too. TRANSACTIONS is true or false: one every 300 ms.
 */
public final class LedgerProducer {
    private static final long TRANSACTION_NANOS = 300_000_000L;
    private static final long OWED_NANOS = 100_000_000L;
    private static volatile boolean stopped;

    private final Map<String, Object> settings;
    private final String topic;
    private final int partitions;
    private final int recordBytes;
    private final long gapNanos;
    private final boolean transactional;
    private final PrintWriter book;
    private KafkaProducer<byte[], byte[]> producer;
    private long sequence;
    private long transaction;

    private LedgerProducer(String[] arguments) throws IOException {
        settings = new HashMap<>();
        for (int i = 7; i < arguments.length; i++) {
            String[] setting = arguments[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        settings.put("bootstrap.servers", arguments[0]);
        topic = arguments[1];
        partitions = Integer.parseInt(arguments[2]);
        book = new PrintWriter(new FileWriter(arguments[3], StandardCharsets.US_ASCII, true), true);
        recordBytes = Integer.parseInt(arguments[4]);
        gapNanos = (long) (recordBytes / Double.parseDouble(arguments[5]) * 1e9);
        transactional = Boolean.parseBoolean(arguments[6]);
        settings.put("client.id", topic);
        if (transactional) {
            settings.put("transactional.id", topic);
        }
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopped = true;
            try {
                main.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }));
        new LedgerProducer(arguments).run();
    }

    private void run() {
        open();
        if (transactional) {
            beginTransaction();
        }
        long due = System.nanoTime();
        long commitAt = due + TRANSACTION_NANOS;
        while (!stopped) {
            if (transactional && System.nanoTime() >= commitAt) {
                endTransaction();
                beginTransaction();
                commitAt = System.nanoTime() + TRANSACTION_NANOS;
            }
            send();
            due = Math.max(due + gapNanos, System.nanoTime() - OWED_NANOS);
            long left = due - System.nanoTime();
            if (left > 0) {
                LockSupport.parkNanos(left);
            }
        }
        if (transactional) {
            endTransaction();
        }
        producer.close();
        book.println("e " + sequence);
        book.close();
    }

    private void open() {
        producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        if (transactional) {
            while (true) {
                try {
                    producer.initTransactions();
                    break;
                } catch (TimeoutException e) {
                    // While no broker answers there is nothing else to do.
                }
            }
        }
    }

    private void beginTransaction() {
        transaction++;
        producer.beginTransaction();
    }

    private void send() {
        long number = sequence++;
        long of = transaction;
        byte[] value = value(topic, number, of, recordBytes);
        try {
            producer.send(new ProducerRecord<>(topic, (int) (number % partitions), null, value), (metadata, error) -> {
                if (error == null) {
                    long offset = metadata.hasOffset() ? metadata.offset() : -1;
                    book.println("a " + number + " " + of + " " + metadata.partition() + " " + offset);
                } else {
                    book.println("f " + number + " " + of + " " + error.getClass().getSimpleName());
                }
            });
        } catch (KafkaException e) {
            // The transaction has failed already: its end says so.
            book.println("f " + number + " " + of + " " + e.getClass().getSimpleName());
        }
    }

    /** As Kafka's documentation has it: a commit that times out is tried again, any other failure aborts. */
    private void endTransaction() {
        while (true) {
            try {
                producer.commitTransaction();
                book.println("c " + transaction);
                return;
            } catch (TimeoutException | InterruptException e) {
                continue;
            } catch (ProducerFencedException e) {
                openAgain(e);
                return;
            } catch (KafkaException e) {
                abort();
                return;
            }
        }
    }

    private void abort() {
        while (true) {
            try {
                producer.abortTransaction();
                book.println("x " + transaction);
                return;
            } catch (TimeoutException | InterruptException e) {
                continue;
            } catch (KafkaException e) {
                openAgain(e);
                return;
            }
        }
    }

    /** A new producer of the same id ends the old one's transaction, one way or the other. */
    private void openAgain(KafkaException cause) {
        book.println("u " + transaction + " " + cause.getClass().getSimpleName());
        producer.close(Duration.ZERO);
        open();
    }

    private static byte[] value(String producer, long sequence, long transaction, int size) {
        String head = producer + " " + sequence + " " + transaction + " ";
        String filling = Long.toHexString(sequence) + ".";
        StringBuilder body = new StringBuilder(head);
        for (int i = 0; body.length() < size - 9; i++) {
            body.append(filling.charAt(i % filling.length()));
        }
        byte[] bytes = body.toString().getBytes(StandardCharsets.US_ASCII);
        CRC32 checksum = new CRC32();
        checksum.update(bytes);
        return (String.format("%08x ", checksum.getValue()) + body).getBytes(StandardCharsets.US_ASCII);
    }
}
