package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Time;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.applied.AppliedState;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;

import javax.management.ObjectName;

/** The traces of a real broker with the plug-in in its JVM and on its disk after it stops, and how the next one in this JVM begins. */
class LiveStopTest {
    private static final int QUOTA = 50_000;
    private static final int WINDOW_SECONDS = 3;

    @TempDir
    private Path directory;
    private Path applied;

    @BeforeEach
    void folders() throws IOException {
        Files.createDirectory(directory.resolve("decision"));
        applied = Files.createDirectory(directory.resolve("applied")).resolve("applied.json");
    }

    /** A broker of this JVM, of a cluster of its own. All have the same id, decision file and applied-state file. */
    private final class Broker implements AutoCloseable {
        private final String clusterId = Uuid.randomUuid().toString();
        private final ReservedPorts ports = new ReservedPorts();
        private final String address;
        private final KafkaRaftServer server;

        Broker() throws IOException {
            Properties properties = new Properties();
            address = "127.0.0.1:" + ports.next();
            String controller = "127.0.0.1:" + ports.next();
            properties.setProperty("controller.quorum.voters", "1@" + controller);
            properties.setProperty("listeners", "PLAINTEXT://" + address + ",CONTROLLER://" + controller);
            properties.setProperty("node.id", "1");
            properties.setProperty("process.roles", "broker,controller");
            properties.setProperty("controller.listener.names", "CONTROLLER");
            properties.setProperty("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
            properties.setProperty("log.dirs", directory.resolve(clusterId).toString());
            properties.setProperty("log.cleaner.dedupe.buffer.size", "2097152");
            properties.setProperty("quota.window.num", String.valueOf(WINDOW_SECONDS));
            properties.setProperty("client.quota.callback.class", "org.kquota.KquotaCallback");
            properties.setProperty("kquota.mode", "enforce");
            properties.setProperty("kquota.decision.lost.action", "open");
            properties.setProperty("kquota.decision.file", directory.resolve("decision/decision.json").toString());
            properties.setProperty("kquota.applied.file", applied.toString());
            properties.setProperty("kquota.exempt.principals", "User:nobody");
            Path file = directory.resolve(clusterId + ".properties");
            try (OutputStream out = Files.newOutputStream(file)) {
                properties.store(out, null);
            }
            assertEquals(0, StorageTool.execute(new String[] {"format", "-t", clusterId, "-c", file.toString()},
                new PrintStream(OutputStream.nullOutputStream())));
            server = new KafkaRaftServer(KafkaConfig.fromProps(properties), Time.SYSTEM);
            server.startup();
        }

        Map<String, Object> client() {
            return Map.of("bootstrap.servers", address, "client.id", "app", "enable.metrics.push", false);
        }

        void limitApp() throws Exception {
            try (Admin admin = Admin.create(client())) {
                ClientQuotaEntity app = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, "app"));
                admin.alterClientQuotas(List.of(new ClientQuotaAlteration(app,
                    List.of(new ClientQuotaAlteration.Op("producer_byte_rate", (double) QUOTA))))).all().get(60, TimeUnit.SECONDS);
                // The controller answers before the broker has it.
                LiveBroker.await("the quota is there", () -> {
                    try {
                        return admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get(60, TimeUnit.SECONDS).containsKey(app);
                    } catch (InterruptedException | ExecutionException | TimeoutException e) {
                        throw new IllegalStateException(e);
                    }
                });
            }
        }

        /** Whether a client is delayed that produces what the quota allows in twice the window. */
        boolean delaysApp() throws Exception {
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(client(), new ByteArraySerializer(), new ByteArraySerializer())) {
                producer.send(new ProducerRecord<>("orders", new byte[2 * WINDOW_SECONDS * QUOTA])).get(60, TimeUnit.SECONDS);
                return producer.metrics().entrySet().stream().anyMatch(metric -> metric.getKey().name().equals("produce-throttle-time-max")
                    && metric.getValue().metricValue() instanceof Double max && max > 0);
            }
        }

        AppliedState awaitReport() throws Exception {
            AppliedState[] last = new AppliedState[1];
            LiveBroker.await("a report of this broker", () -> {
                try {
                    last[0] = Files.exists(applied) ? AppliedState.fromJson(Files.readAllBytes(applied)) : null;
                    return last[0] != null && clusterId.equals(last[0].clusterId());
                } catch (IOException e) {
                    throw new IllegalStateException(e);
                }
            });
            return last[0];
        }

        @Override
        public void close() throws IOException {
            server.shutdown();
            server.awaitShutdown();
            ports.close();
        }
    }

    private static List<String> threads() {
        return Thread.getAllStackTraces().keySet().stream().filter(Thread::isAlive).map(Thread::getName)
            .filter(name -> name.startsWith("kquota-")).sorted().toList();
    }

    private static int metrics() throws Exception {
        return ManagementFactory.getPlatformMBeanServer().queryNames(new ObjectName("kafka.server:type=plugins,class=KquotaCallback,*"), null).size();
    }

    @Test
    @Tag("C12")
    void aBrokerThatStopsLeavesItsLastReportAndNothingElseAndTheNextOneBeginsClean() throws Exception {
        AppliedState first;
        try (Broker broker = new Broker()) {
            broker.limitApp();
            assertTrue(broker.delaysApp(), "the quota is in force");
            first = broker.awaitReport();
            assertEquals(List.of("kquota-applied-1", "kquota-decision-1", "kquota-watch-1"), threads());
            assertTrue(metrics() > 0);
        }
        assertEquals(List.of(), threads());
        assertEquals(0, metrics());
        byte[] left = Files.readAllBytes(applied);
        // Longer than from one report to the next.
        Thread.sleep(2_000);
        assertArrayEquals(left, Files.readAllBytes(applied));
        try (Stream<Path> files = Files.list(applied.getParent())) {
            assertEquals(List.of(applied), files.toList());
        }
        try (Broker next = new Broker()) {
            AppliedState second = next.awaitReport();
            assertNotEquals(first.startedUptimeMs(), second.startedUptimeMs());
            assertFalse(next.delaysApp(), "by a quota of the broker before it");
        }
        assertEquals(List.of(), threads());
    }
}
