package org.kquota.accounting;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.server.quota.QuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.KquotaCallback;
import org.kquota.LogLines;
import org.kquota.TestProperties;
import org.kquota.accounting.ClientAccounts.Account;
import org.kquota.quota.BrokerQuotas;
import org.kquota.quota.BrokerQuotasOfThisKafka;
import org.kquota.quota.ManualTime;
import org.kquota.quota.StockQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;
import org.kquota.quota.Tags;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** Accounts by the metrics of the broker's own quota class. */
class ClientAccountsTest {
    private static final double MB = 1e6;

    @TempDir
    private Path directory;
    private final ManualTime time = new ManualTime();
    private Metrics metrics;
    private KquotaCallback callback;
    private BrokerQuotas broker;
    private final TagSets produce = new TagSets(new StockQuotas(StockQuotas.LevelMemory.COUNTED), 100);
    private final TagSets fetch = new TagSets(new StockQuotas(StockQuotas.LevelMemory.COUNTED), 100);
    private final ClientAccounts accounts = new ClientAccounts(produce, List.of(new TagSet(Tags.PAUSED)), fetch,
        tags -> tags.get(Tags.CLIENT_ID).equals("held") ? (Double) MB : null, tags -> null);

    @BeforeEach
    void start() {
        start(QuotaType.PRODUCE);
    }

    private void start(QuotaType type) {
        metrics = new Metrics(time);
        callback = new KquotaCallback();
        JmxReporter jmx = new JmxReporter();
        jmx.contextChange(new KafkaMetricsContext("kafka.server"));
        metrics.addReporter(jmx);
        callback.configure(TestProperties.broker(directory));
        broker = new BrokerQuotasOfThisKafka(type, metrics, time, 11, callback);
    }

    @AfterEach
    void stop() {
        broker.close();
        callback.close();
        metrics.close();
    }

    private Map<String, Account> byClient(int most) {
        return accounts.top(most).stream().collect(Collectors.toMap(Account::clientId, account -> account));
    }

    @Test
    @Tag("B13")
    void whoProducesIsKnownWithRateBytesAndForHowLongItWasHeld() {
        broker.update(null, "held", MB);
        for (String clientId : List.of("held", "free", "idle")) {
            produce.of("", clientId);
            broker.tags("alice", clientId);
        }
        for (int second = 0; second < 30; second++) {
            broker.record("alice", "held", 3 * MB);
            broker.record("alice", "free", MB);
            time.advance(1000);
            accounts.look(1);
        }
        Map<String, Account> known = byClient(10);
        assertEquals(5, accounts.size(), "three clients and the pool, and the one for clients beyond the bound");
        assertEquals(Set.of("held", "free"), known.keySet(), "a client that neither produces nor reads is not listed");
        assertEquals(3 * MB, known.get("held").produceRate(), 0.2 * MB);
        // In a window of ten seconds, three times the quota is above it from the fourth second on.
        assertEquals(27, known.get("held").heldSeconds(), 1);
        assertEquals(0, known.get("free").heldSeconds());
        assertEquals(MB, known.get("held").produceLimit());
        assertNull(known.get("free").produceLimit());

        // Bytes are late by a window: afterwards all of them are there.
        for (int second = 0; second < 12; second++) {
            time.advance(1000);
            accounts.look(1);
        }
        assertEquals(90 * MB, byClient(10).get("held").producedBytes(), 9 * MB);
        assertEquals(30 * MB, byClient(10).get("free").producedBytes(), 3 * MB);
        assertEquals(byClient(10).get("free"), accounts.of(Tags.of("", "free")));
        assertEquals(0, accounts.of(Tags.of("<group>nobody", "")).producedBytes(), "a group that no client has used yet");
    }

    @Test
    void whoReadIsKnownWithItsBytesAlsoWhenItReadsNoMore() {
        stop();
        start(QuotaType.FETCH);
        fetch.of("", "reader");
        broker.tags("alice", "reader");
        for (int second = 0; second < 30; second++) {
            broker.record("alice", "reader", 2 * MB);
            time.advance(1000);
            accounts.look(1);
        }
        assertEquals(2 * MB, byClient(10).get("reader").fetchRate(), 0.2 * MB);
        for (int second = 0; second < 12; second++) {
            time.advance(1000);
            accounts.look(1);
        }
        Account idle = byClient(10).get("reader");
        assertEquals(60 * MB, idle.fetchedBytes(), 6 * MB);
        assertEquals(0, idle.fetchRate());
        assertEquals(0, idle.producedBytes());
    }

    @Test
    @Tag("B5")
    void clientsWithoutAnIdHaveOneAccount() {
        produce.of("", "");
        broker.record("alice", "", MB);
        broker.record("bob", "", MB);
        time.advance(1000);
        accounts.look(1);
        assertEquals(Set.of(""), byClient(10).keySet());
        assertTrue(accounts.of(Tags.of("", "")).produceRate() > 0);
    }

    /** Kafka logs a warning with a stack trace for each attribute that several are asked for of at once and one is not there. */
    @Test
    void whatTheBrokerDoesNotMeterIsNoWarningInItsLog() {
        try (LogLines log = new LogLines(JmxReporter.class)) {
            // The MBean without any tags is there in any case: the broker's queue of delayed requests has it.
            fetch.of("", "");
            produce.of("", "app");
            broker.record("alice", "app", MB);
            // Kafka forgets the delay of who has not been delayed for an hour, whatever else he did.
            assertNotNull(metrics.removeMetric(metrics.metricName("throttle-time", "Produce", "", Tags.of("", "app"))));
            time.advance(1000);
            accounts.look(1);
            assertEquals(List.of(), log.lines());
            assertTrue(accounts.of(Tags.of("", "app")).produceRate() > 0);
            assertEquals(0, accounts.of(Tags.of("", "app")).produceThrottleMs());
        }
    }

    @Test
    void whatIsReportedIsBoundedAndTheLargestComeFirst() {
        for (int i = 0; i < 60; i++) {
            produce.of("", "client-" + i);
            broker.record("alice", "client-" + i, (i + 1) * MB);
        }
        time.advance(1000);
        accounts.look(1);
        List<Account> top = accounts.top(5);
        assertEquals(List.of("client-59", "client-58", "client-57", "client-56", "client-55"), top.stream().map(Account::clientId).limit(5).toList());
        assertTrue(top.size() <= 25, "at most five of each of five orders");
    }

    @Test
    void looksBecomeRarerWithTheNumberOfClients() {
        TagSets many = new TagSets(new StockQuotas(StockQuotas.LevelMemory.COUNTED), 10_000);
        for (int i = 0; i < 3_500; i++) {
            many.of("", "client-" + i);
        }
        ClientAccounts rare = new ClientAccounts(many, List.of(), fetch, tags -> null, tags -> null);
        rare.look(1);
        rare.look(1);
        assertEquals(0, rare.size());
        rare.look(1);
        rare.look(1);
        assertEquals(3_501, rare.size());
    }

    @Test
    void ofWhoIsGoneNothingIsKept() {
        for (int i = 0; i < 90; i++) {
            produce.of("", "client-" + i);
        }
        accounts.look(1);
        assertEquals(92, accounts.size());
        assertEquals(2 * 92, accounts.names());
        produce.forgetUnusedSince(1, set -> true);
        accounts.look(1);
        assertEquals(2, accounts.size());
        assertEquals(2 * 2, accounts.names());
    }

    @Test
    void refusalsAreCountedByClientAndBounded() {
        Refusals refusals = new Refusals();
        for (int i = 0; i < 3_000; i++) {
            refusals.count("User:alice", "client-" + i);
        }
        for (int i = 0; i < 10; i++) {
            refusals.count("User:bob", null);
            refusals.count("User:alice", "client-7");
        }
        List<Refusals.Count> top = refusals.top(2);
        assertEquals(List.of(new Refusals.Count("<others>", "", 2_010), new Refusals.Count("User:alice", "client-7", 11)), top);
    }

    @Test
    void aClientThatMakesUpClientIdsHidesTheOthersForAMomentAlone() {
        Refusals refusals = new Refusals();
        for (int second = 0; second < 10; second++) {
            for (int i = 0; i < 900; i++) {
                refusals.count("User:mallory", "made-up-" + second + "-" + i);
            }
            refusals.count("User:bob", "orders");
            refusals.makeRoom();
            assertTrue(refusals.clients().size() <= 1_001, "bounded");
        }
        assertEquals(10, refusals.requests(new Refusals.Client("User:bob", "orders")), "refused again and again, it stays");
        for (int i = 0; i < 1_000; i++) {
            refusals.count("User:mallory", "made-up-at-last-" + i);
        }
        refusals.count("User:carol", "late");
        assertEquals(0, refusals.requests(new Refusals.Client("User:carol", "late")), "no room at this moment");
        refusals.makeRoom();
        refusals.count("User:carol", "late");
        assertEquals(1, refusals.requests(new Refusals.Client("User:carol", "late")));
    }

    @Test
    void theMetricsOfClientsThatMadeRoomAreRemoved() {
        Refusals refusals = new Refusals();
        RefusalMetrics metrics = new RefusalMetrics(refusals);
        Metrics registry = new Metrics();
        metrics.register(new PluginMetricsImpl(registry, Map.of()), List.of());
        for (int i = 0; i < 3_000; i++) {
            refusals.count("User:mallory", "made-up-" + i);
            if (i % 500 == 0) {
                metrics.update();
            }
        }
        metrics.update();
        long shown = registry.metrics().keySet().stream().filter(name -> name.name().equals(RefusalMetrics.OF_CLIENT)).count();
        assertEquals(refusals.clients().size(), shown);
        registry.close();
    }
}
