package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

import javax.management.ObjectName;

/** Two brokers with the jar on their class path, one of them without the plug-in in its properties, asked the same. */
class LiveStockTest {
    private static final String CALLBACK = "client.quota.callback.class";
    /** Kafka's name of the default entity is null. */
    private static final String DEFAULT = "<default>";
    private static final double UNREACHED = 1e12;
    private static final double SMALL = 100e3;
    private static final String[][] CLIENTS = {{"alice", "app"}, {"alice", "other"}, {"bob", "app"}, {"bob", "other"}};

    @TempDir
    private static Path directory;
    private static LiveBroker stock;
    private static LiveBroker plugged;

    @BeforeAll
    static void start() throws Exception {
        Map<String, String> without = new HashMap<>();
        without.put(CALLBACK, null);
        stock = new LiveBroker(Files.createDirectory(directory.resolve("stock")), without);
        plugged = new LiveBroker(Files.createDirectory(directory.resolve("plugged")), Map.of());
        plugged.decide("OPEN", 1, "enforce", 3_600_000);
        plugged.awaitApplied("OPEN", applied -> applied.lost() == null);
    }

    @AfterAll
    static void stop() {
        for (LiveBroker broker : Arrays.asList(stock, plugged)) {
            if (broker != null) {
                broker.close();
            }
        }
    }

    private static void quota(LiveBroker broker, String user, String clientId, Double bytesPerSecond) throws Exception {
        Map<String, String> entity = new HashMap<>();
        if (user != null) {
            entity.put(ClientQuotaEntity.USER, user.equals(DEFAULT) ? null : user);
        }
        if (clientId != null) {
            entity.put(ClientQuotaEntity.CLIENT_ID, clientId.equals(DEFAULT) ? null : clientId);
        }
        try (Admin admin = broker.admin()) {
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(entity),
                List.of(new ClientQuotaAlteration.Op("producer_byte_rate", bytesPerSecond))))).all().get();
            // The broker has taken over what it answers with: both roles are in it.
            LiveBroker.await("the quota is there", () -> {
                try {
                    return admin.describeClientQuotas(org.apache.kafka.common.quota.ClientQuotaFilter.all()).entities().get()
                        .containsKey(new ClientQuotaEntity(entity)) == (bytesPerSecond != null);
                } catch (InterruptedException | ExecutionException e) {
                    throw new IllegalStateException(e);
                }
            });
        }
    }

    /** Each client sends one request; the longest delay in the response to each, in milliseconds. */
    private static Map<String, Double> send(LiveBroker broker, int bytes) throws Exception {
        Map<String, Double> delays = new HashMap<>();
        for (String[] client : CLIENTS) {
            try (KafkaProducer<byte[], byte[]> producer = broker.producer(client[0], client[1])) {
                producer.send(new ProducerRecord<>("t", new byte[bytes])).get();
                delays.put(String.join("/", client), producer.metrics().entrySet().stream()
                    .filter(entry -> entry.getKey().name().equals("produce-throttle-time-max"))
                    .mapToDouble(entry -> (Double) entry.getValue().metricValue()).findAny().orElseThrow());
            }
        }
        return delays;
    }

    /** Under which tags its clients are metered, without the administrator of these tests, who is exempt from kquota. */
    private static Set<String> metered(LiveBroker broker) throws Exception {
        return broker.jmx(connection -> connection.queryNames(new ObjectName("kafka.server:type=Produce,*"), null).stream()
            .map(ObjectName::getCanonicalName).filter(name -> !name.contains("exempt") && !name.contains(LiveBroker.AGENT))
            .collect(Collectors.toCollection(TreeSet::new)));
    }

    private static boolean hasPlugIn(LiveBroker broker) throws Exception {
        return broker.jmx(connection -> !connection.queryNames(new ObjectName("kafka.server:type=plugins,class=KquotaCallback,*"), null).isEmpty());
    }

    @Test
    @Tag("C1")
    void thePropertyLoadsThePlugInAndNothingElseDoes() throws Exception {
        assertEquals(LiveBroker.HAS_METRICS, hasPlugIn(plugged));
        assertTrue(Files.exists(plugged.appliedFile()));
        assertFalse(hasPlugIn(stock));
        assertFalse(Files.exists(stock.appliedFile()));
        assertFalse(stock.log().contains("kquota is in force"));
        // Another class needs a restart: a broker refuses the change rather than ignore it.
        try (Admin admin = stock.admin()) {
            AlterConfigOp change = new AlterConfigOp(new ConfigEntry(CALLBACK, LiveBroker.CALLBACK), AlterConfigOp.OpType.SET);
            ExecutionException refused = assertThrows(ExecutionException.class,
                () -> admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.BROKER, "1"), List.of(change))).all().get());
            assertTrue(refused.getMessage().contains(CALLBACK), refused.getMessage());
        }
    }

    @Test
    @Tag("C2")
    @Tag("B4")
    void quotasOfTheStandardToolsGiveTheSameTagsAndDelaysAndRemovingOneRestoresTheNext() throws Exception {
        String[][] leastSpecificFirst = {{DEFAULT, DEFAULT}, {DEFAULT, "app"}, {"alice", null}, {"alice", "app"}};
        for (String[] level : leastSpecificFirst) {
            for (LiveBroker broker : List.of(stock, plugged)) {
                quota(broker, level[0], level[1], UNREACHED);
                send(broker, 1000);
            }
            assertEquals(metered(stock), metered(plugged), () -> "with a quota of " + String.join("/", Arrays.toString(level)));
        }
        assertTrue(metered(plugged).stream().anyMatch(name -> name.contains("user=alice") && !name.contains("client-id")), metered(plugged).toString());

        // One request of nearly a megabyte in a window of two to three seconds is far over this quota.
        quota(stock, "alice", "app", SMALL);
        quota(plugged, "alice", "app", SMALL);
        Map<String, Double> expected = send(stock, 900_000);
        Map<String, Double> delays = send(plugged, 900_000);
        for (Map<String, Double> each : List.of(expected, delays)) {
            assertTrue(each.get("alice/app") > 0, each.toString());
            assertEquals(0, each.get("alice/other") + each.get("bob/app") + each.get("bob/other"), each.toString());
        }
        assertEquals(1, delays.get("alice/app") / expected.get("alice/app"), 0.5, expected + " stock, " + delays + " with the plug-in");

        for (LiveBroker broker : List.of(stock, plugged)) {
            quota(broker, "alice", "app", null);
            assertEquals(0, send(broker, 900_000).get("alice/app"), "the user's own, which no client reaches, counts again");
        }
        assertEquals(metered(stock), metered(plugged));
    }
}
