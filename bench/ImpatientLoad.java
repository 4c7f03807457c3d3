import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.RequestHeader;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Random;

/**
 * Clients without any patience: whatever the answer to a produce request is, each connection sends the next one at once.
 *
 * <pre>ImpatientLoad HOST PORT TOPIC CONNECTIONS RECORD_BYTES WARM_SECONDS SECONDS</pre>
 *
 * <p>It speaks the protocol itself, with one thread and a selector, so that a thousand connections cost it less than the broker. After
 * WARM_SECONDS it prints a line, after as many another, and after SECONDS more one JSON object with the answers since.
 */
public final class ImpatientLoad {
    /** The last version whose answers have fields at fixed places. */
    private static final short VERSION = 8;
    private static final int LENGTH_BYTES = 4;
    /** The bytes before the error code of the only partition, without those of the name of the topic. */
    private static final int BEFORE_ERROR_BYTES = 4 + 4 + 2 + 4 + 4;

    private ImpatientLoad() {
    }

    public static void main(String[] arguments) throws IOException {
        InetSocketAddress broker = new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1]));
        String topic = arguments[2];
        int connections = Integer.parseInt(arguments[3]);
        byte[] value = new byte[Integer.parseInt(arguments[4])];
        new Random(0).nextBytes(value);
        try (Selector selector = Selector.open()) {
            for (int i = 1; i <= connections; i++) {
                SocketChannel channel = SocketChannel.open(broker);
                channel.configureBlocking(false);
                channel.setOption(java.net.StandardSocketOptions.TCP_NODELAY, true);
                Connection connection = new Connection(channel, request(topic, topic + "-" + i, value), topic.getBytes(StandardCharsets.UTF_8).length);
                channel.register(selector, SelectionKey.OP_READ, connection);
                connection.send();
            }
            run(selector, Double.parseDouble(arguments[5]));
            System.out.println("flows");
            run(selector, Double.parseDouble(arguments[5]));
            System.out.println("warm");
            long began = System.nanoTime();
            long[] counts = run(selector, Double.parseDouble(arguments[6]));
            System.out.println(String.format(Locale.ROOT, "{\"answers\": %d, \"refused\": %d, \"seconds\": %.3f}",
                counts[0], counts[1], (System.nanoTime() - began) / 1e9));
        }
    }

    /** Answers, and those of them that were errors. */
    private static long[] run(Selector selector, double seconds) throws IOException {
        long[] counts = new long[2];
        long until = System.nanoTime() + (long) (seconds * 1e9);
        while (System.nanoTime() < until) {
            selector.select(key -> {
                try {
                    ((Connection) key.attachment()).proceed(key, counts);
                } catch (IOException e) {
                    throw new IllegalStateException(e);
                }
            }, 100);
        }
        return counts;
    }

    private static ByteBuffer request(String topic, String client, byte[] value) {
        ProduceRequestData.PartitionProduceData partition = new ProduceRequestData.PartitionProduceData()
            .setIndex(0).setRecords(MemoryRecords.withRecords(Compression.NONE, new SimpleRecord(value)));
        ProduceRequestData data = new ProduceRequestData().setAcks((short) 1).setTimeoutMs(30_000);
        data.topicData().add(new ProduceRequestData.TopicProduceData().setName(topic).setPartitionData(List.of(partition)));
        ByteBuffer body = ProduceRequest.builder(data).build(VERSION).serializeWithHeader(new RequestHeader(ApiKeys.PRODUCE, VERSION, client, 0));
        ByteBuffer whole = ByteBuffer.allocateDirect(LENGTH_BYTES + body.remaining());
        return whole.putInt(body.remaining()).put(body).flip();
    }

    /** One connection, with one request under way. */
    private static final class Connection {
        private final SocketChannel channel;
        private final ByteBuffer request;
        private final ByteBuffer answer = ByteBuffer.allocateDirect(4096);
        private final int errorAt;

        Connection(SocketChannel channel, ByteBuffer request, int nameBytes) {
            this.channel = channel;
            this.request = request;
            errorAt = LENGTH_BYTES + BEFORE_ERROR_BYTES + nameBytes;
        }

        void send() throws IOException {
            request.rewind();
            channel.write(request);
        }

        void proceed(SelectionKey key, long[] counts) throws IOException {
            if (request.hasRemaining()) {
                channel.write(request);
            }
            if (channel.read(answer) < 0) {
                throw new EOFException("the broker closed a connection");
            }
            if (answer.position() >= LENGTH_BYTES && answer.position() >= LENGTH_BYTES + answer.getInt(0)) {
                counts[0]++;
                counts[1] += answer.getShort(errorAt) == 0 ? 0 : 1;
                answer.clear();
                send();
            }
            key.interestOps(request.hasRemaining() ? SelectionKey.OP_READ | SelectionKey.OP_WRITE : SelectionKey.OP_READ);
        }
    }
}
