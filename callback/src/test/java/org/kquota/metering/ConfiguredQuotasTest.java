package org.kquota.metering;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.server.quota.QuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.kquota.KquotaCallback;
import org.kquota.TestProperties;
import org.kquota.quota.BrokerQuotas;
import org.kquota.quota.BrokerQuotasOfThisKafka;
import org.kquota.quota.ManualTime;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Static quotas and groups on the broker's own quota class, with the plug-in, together with quotas of the standard tools. */
class ConfiguredQuotasTest {
    private static final double MB = 1e6;
    private static final double UNLIMITED = Long.MAX_VALUE;
    private static final Map<String, String> OF_THE_TEXT = Map.of(
        "kquota.quota.produce.default", "2M",
        "kquota.quota.produce.overrides", "\"clientA:4M,clientB:10M\"",
        "kquota.quota.fetch.default", "2M",
        "kquota.quota.fetch.overrides", "clientC:3M,clientD:5M");
    private static final Map<String, String> INGEST = Map.of(
        "kquota.quota.groups", "ingest,nightly",
        "kquota.quota.group.ingest.principals", "User:alice;User:etl-*;~User:CN=app[0-9]+,O=x",
        "kquota.quota.group.ingest.client.ids", "loader",
        "kquota.quota.group.ingest.produce", "5M",
        "kquota.quota.group.ingest.fetch", "8M",
        "kquota.quota.group.ingest.request", "50",
        "kquota.quota.group.nightly.client.ids", "night-*",
        "kquota.quota.group.nightly.produce", "1M");

    @TempDir
    private Path directory;
    private final ManualTime time = new ManualTime();
    private final List<AutoCloseable> toClose = new ArrayList<>();
    /** Of the broker made last. */
    private KquotaCallback callback;

    private BrokerQuotas broker(QuotaType type, Map<String, String> settings) {
        return broker(type, settings, 1);
    }

    private BrokerQuotas broker(QuotaType type, Map<String, String> settings, int nodeId) {
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put("node.id", String.valueOf(nodeId));
        properties.putAll(settings);
        callback = new KquotaCallback();
        callback.configure(properties);
        Metrics metrics = new Metrics(time);
        BrokerQuotas quotas = new BrokerQuotasOfThisKafka(type, metrics, time, 11, callback);
        toClose.addAll(List.of(quotas, (AutoCloseable) callback::close, metrics));
        return quotas;
    }

    @AfterEach
    void close() throws Exception {
        for (AutoCloseable each : toClose) {
            each.close();
        }
    }

    @ParameterizedTest
    @CsvSource({"PRODUCE,clientA,4", "PRODUCE,clientB,10", "PRODUCE,clientE,2", "PRODUCE,clientC,2", "PRODUCE,'',2",
        "FETCH,clientC,3", "FETCH,clientD,5", "FETCH,clientE,2", "FETCH,clientA,2", "FETCH,'',2"})
    @Tag("B6")
    @Tag("B4")
    void theDefaultsAndOverridesOfTheTextHold(QuotaType type, String clientId, double expected) {
        BrokerQuotas quotas = broker(type, OF_THE_TEXT);
        assertEquals(Map.of("user", "", "client-id", clientId), quotas.tags("alice", clientId));
        assertEquals(expected * MB, quotas.limit("alice", clientId));
        // Two seconds of the quota more than the broker's window holds are a delay of two seconds: it is in force, not only shown.
        assertEquals(2000, quotas.record("alice", clientId, 12 * expected * MB), 1);
    }

    @Test
    @Tag("B6")
    void requestQuotasHaveNoStaticForm() {
        assertEquals(UNLIMITED, broker(QuotaType.REQUEST, OF_THE_TEXT).limit("alice", "clientA"));
    }

    @Test
    @Tag("B5")
    void clientsWithoutAnIdShareOneStaticQuota() {
        BrokerQuotas quotas = broker(QuotaType.PRODUCE, OF_THE_TEXT);
        assertEquals(0, quotas.record("alice", "", 20 * MB));
        assertTrue(quotas.record("bob", "", 20 * MB) > 0, "bob's are of the same quota");
        assertEquals(0, quotas.record("bob", "other", 20 * MB));
    }

    @Test
    @Tag("B7")
    void aQuotaHoldsOnEachBrokerForItself() {
        BrokerQuotas one = broker(QuotaType.PRODUCE, OF_THE_TEXT, 1);
        BrokerQuotas two = broker(QuotaType.PRODUCE, OF_THE_TEXT, 2);
        assertEquals(0, one.record("alice", "clientE", 20 * MB));
        assertEquals(0, two.record("alice", "clientE", 20 * MB), "bytes on one broker do not count on the other");
        assertEquals(1000, one.record("alice", "clientE", 2 * MB), 1);
        assertEquals(1000, two.record("alice", "clientE", 2 * MB), 1);
    }

    @Test
    @Tag("B10")
    void oneClientOverItsStaticQuotaSlowsNoOther() {
        BrokerQuotas quotas = broker(QuotaType.PRODUCE, OF_THE_TEXT);
        assertTrue(quotas.record("alice", "clientE", 500 * MB) > 0);
        assertEquals(0, quotas.record("alice", "clientF", 20 * MB));
        assertEquals(0, quotas.record("alice", "clientA", 20 * MB));
    }

    @Test
    @Tag("B6")
    void aQuotaOfTheStandardToolsWinsAtEveryLevelAndGivesWayWhenItIsRemoved() {
        String[][] levels = {{"alice", "clientA"}, {"alice", BrokerQuotas.DEFAULT}, {"alice", null}, {BrokerQuotas.DEFAULT, "clientA"},
            {BrokerQuotas.DEFAULT, BrokerQuotas.DEFAULT}, {BrokerQuotas.DEFAULT, null}, {null, "clientA"}, {null, BrokerQuotas.DEFAULT}};
        BrokerQuotas quotas = broker(QuotaType.PRODUCE, OF_THE_TEXT);
        for (String[] level : levels) {
            assertEquals(4 * MB, quotas.limit("alice", "clientA"));
            quotas.update(level[0], level[1], 7 * MB);
            assertEquals(7 * MB, quotas.limit("alice", "clientA"), () -> String.join("/", level));
            quotas.update(level[0], level[1], null);
        }
        assertEquals(Map.of("user", "", "client-id", "clientA"), quotas.tags("alice", "clientA"));
        assertEquals(4 * MB, quotas.limit("alice", "clientA"));
    }

    @Test
    @Tag("B6")
    void whomTheStandardToolsDoNotCoverKeepsTheStaticQuota() {
        BrokerQuotas quotas = broker(QuotaType.PRODUCE, OF_THE_TEXT);
        quotas.update("alice", null, 7 * MB);
        assertEquals(Map.of("user", "alice", "client-id", ""), quotas.tags("alice", "clientA"));
        assertEquals(Map.of("user", "", "client-id", "clientA"), quotas.tags("bob", "clientA"));
        assertEquals(4 * MB, quotas.limit("bob", "clientA"));
        assertEquals(2 * MB, quotas.limit("bob", "clientE"));
    }

    @ParameterizedTest
    @CsvSource({"alice,any,ingest", "etl-7,any,ingest", "'CN=app12,O=x',any,ingest", "bob,loader,ingest", "bob,night-shift,nightly",
        // A principal counts before a client id, which anybody can choose.
        "alice,night-shift,ingest"})
    @Tag("C4")
    void aMemberIsMeteredAsItsGroup(String user, String clientId, String group) {
        BrokerQuotas quotas = broker(QuotaType.PRODUCE, INGEST);
        assertEquals(Map.of("user", "<group>" + group, "client-id", ""), quotas.tags(user, clientId));
        assertEquals(group.equals("ingest") ? 5 * MB : MB, quotas.limit(user, clientId));
    }

    @ParameterizedTest
    @CsvSource({"bob,any", "alice2,any", "'CN=app,O=x',any", "'CN=app1,O=xy',any", "bob,loader2", "bob,night", "<group>ingest,any"})
    @Tag("C4")
    void whoIsInNoGroupIsMeteredAsOnAStockBroker(String user, String clientId) {
        BrokerQuotas quotas = broker(QuotaType.PRODUCE, INGEST);
        assertEquals(Map.of("user", "", "client-id", clientId), quotas.tags(user, clientId));
        assertEquals(UNLIMITED, quotas.limit(user, clientId));
    }

    @Test
    @Tag("C4")
    void aGroupsMembersShareItsQuotaAndOtherGroupsAndClientsDoNot() {
        BrokerQuotas quotas = broker(QuotaType.PRODUCE, INGEST);
        assertEquals(0, quotas.record("alice", "one", 30 * MB));
        assertEquals(0, quotas.record("etl-1", "two", 20 * MB));
        // 55 MB in a window of 10 s at 5 MB/s are 5 MB too many, one second's worth.
        assertEquals(1000, quotas.record("bob", "loader", 5 * MB), 1);
        assertEquals(0, quotas.record("bob", "night-1", 10 * MB));
        assertEquals(0, quotas.record("bob", "free", 500 * MB));
    }

    @Test
    @Tag("C4")
    void aGroupHoldsForTheTypesItHasALimitOf() {
        assertEquals(8 * MB, broker(QuotaType.FETCH, INGEST).limit("alice", "any"));
        assertEquals(UNLIMITED, broker(QuotaType.FETCH, INGEST).limit("bob", "night-1"));
        assertEquals(Map.of("user", "", "client-id", "night-1"), broker(QuotaType.FETCH, INGEST).tags("bob", "night-1"));
        assertEquals(50, broker(QuotaType.REQUEST, INGEST).limit("alice", "any"));
        assertEquals(Map.of("user", "", "client-id", "any"), broker(QuotaType.CONTROLLER_MUTATION, INGEST).tags("alice", "any"));
    }

    @Test
    @Tag("C4")
    @Tag("C2")
    void aQuotaThatNamesTheMemberTakesItOutOfTheGroupAndADefaultDoesNot() {
        BrokerQuotas quotas = broker(QuotaType.PRODUCE, INGEST);
        quotas.update(BrokerQuotas.DEFAULT, null, 2 * MB);
        assertEquals(5 * MB, quotas.limit("alice", "any"));
        quotas.update("alice", null, 9 * MB);
        assertEquals(Map.of("user", "alice", "client-id", ""), quotas.tags("alice", "any"));
        assertEquals(9 * MB, quotas.limit("alice", "any"));
        assertEquals(5 * MB, quotas.limit("etl-1", "any"));
        assertEquals(2 * MB, quotas.limit("bob", "any"));
        quotas.update("alice", null, null);
        assertEquals(Map.of("user", "<group>ingest", "client-id", ""), quotas.tags("alice", "any"));
        assertEquals(5 * MB, quotas.limit("alice", "any"));
    }

    @Test
    @Tag("C4")
    void staticQuotasHoldForWhoIsInNoGroup() {
        Map<String, String> both = new LinkedHashMap<>(INGEST);
        both.putAll(OF_THE_TEXT);
        BrokerQuotas quotas = broker(QuotaType.PRODUCE, both);
        assertEquals(5 * MB, quotas.limit("alice", "clientA"));
        assertEquals(4 * MB, quotas.limit("bob", "clientA"));
        assertNotEquals(quotas.tags("alice", "clientA"), quotas.tags("bob", "clientA"));
    }

    /** The broker's own view after a change: which of the eight partitions node 1 leads. */
    private static Cluster ordersLedBy(int... leaders) {
        Node[] nodes = {new Node(1, "one", 1), new Node(2, "two", 2)};
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int partition = 0; partition < leaders.length; partition++) {
            partitions.add(new PartitionInfo("orders", partition, nodes[leaders[partition] - 1], new Node[0], new Node[0]));
        }
        return new Cluster("c", List.of(nodes), partitions, Set.of(), Set.of());
    }

    @Test
    @Tag("C5")
    @Tag("C8")
    void aShareIsInForceAndFollowsALeaderThatMovesWithTheNextRequest() {
        BrokerQuotas quotas = broker(QuotaType.PRODUCE, Map.of(
            "kquota.quota.groups", "orders",
            "kquota.quota.group.orders.client.ids", "orders-app",
            "kquota.quota.group.orders.produce.total", "80M",
            "kquota.quota.group.orders.topics", "orders"));
        callback.updateClusterMetadata(ordersLedBy(1, 1, 2, 2, 2, 2, 2, 2));
        assertEquals(20 * MB, quotas.limit("alice", "orders-app"));
        assertEquals(2000, quotas.record("alice", "orders-app", 12 * 20 * MB), 1);
        time.advance(60_000);
        callback.updateClusterMetadata(ordersLedBy(1, 2, 2, 2, 2, 2, 2, 2));
        assertEquals(10 * MB, quotas.limit("alice", "orders-app"));
        assertEquals(2000, quotas.record("alice", "orders-app", 12 * 10 * MB), 1);
    }

    /** At a limit near zero Kafka mutes for days, or not at all where the time has no room in an int. */
    @Test
    @Tag("C5")
    void aShareOfNextToNothingIsTheLeastQuotaThatThereIs() {
        BrokerQuotas quotas = broker(QuotaType.PRODUCE, Map.of(
            "kquota.quota.groups", "orders",
            "kquota.quota.group.orders.client.ids", "orders-app",
            "kquota.quota.group.orders.produce.total", "1M",
            "kquota.quota.group.orders.topics", "orders"));
        int[] leaders = new int[4_000];
        Arrays.fill(leaders, 2);
        callback.updateClusterMetadata(ordersLedBy(leaders));
        assertEquals(1e3, quotas.limit("alice", "orders-app"));
        assertEquals(90_000, quotas.record("alice", "orders-app", 100_000), 1);
        Arrays.fill(leaders, 0, 4, 1);
        callback.updateClusterMetadata(ordersLedBy(leaders));
        assertEquals(1e3, quotas.limit("alice", "orders-app"), "the same by its share");
        leaders[4] = 1;
        callback.updateClusterMetadata(ordersLedBy(leaders));
        assertEquals(1250, quotas.limit("alice", "orders-app"));
    }
}
