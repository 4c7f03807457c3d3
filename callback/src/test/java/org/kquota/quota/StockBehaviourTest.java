package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.server.quota.QuotaType;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.kquota.KquotaCallback;
import org.kquota.TestProperties;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** The broker's own quota class with and without the plug-in, on the same script: in OPEN they behave alike. */
class StockBehaviourTest {
    private static final String DEFAULT = BrokerQuotas.DEFAULT;
    private static final int WINDOWS = 11;
    private static final double MB = 1e6;

    @TempDir
    private Path directory;

    /** One broker without and one with the plug-in, asked the same. */
    private final class Pair implements AutoCloseable {
        private final ManualTime time = new ManualTime();
        private final Metrics stockMetrics = new Metrics(time);
        private final Metrics ourMetrics = new Metrics(time);
        private final KquotaCallback callback = new KquotaCallback();
        private final BrokerQuotas stock;
        private final BrokerQuotas ours;
        private final List<String> script = new ArrayList<>();

        Pair(QuotaType type) {
            this(type, WINDOWS);
        }

        Pair(QuotaType type, int windows) {
            callback.configure(TestProperties.broker(directory));
            stock = new BrokerQuotasOfThisKafka(type, stockMetrics, time, windows, null);
            ours = new BrokerQuotasOfThisKafka(type, ourMetrics, time, windows, callback);
        }

        void update(String user, String clientId, Double bound) {
            script.add("quota of " + user + "/" + clientId + " = " + bound);
            stock.update(user, clientId, bound);
            ours.update(user, clientId, bound);
        }

        int record(String user, String clientId, double bytes) {
            script.add(user + "/" + clientId + " sends " + bytes);
            int expected = stock.record(user, clientId, bytes);
            assertEquals(expected, ours.record(user, clientId, bytes), this::story);
            return expected;
        }

        void advance(long ms) {
            script.add("wait " + ms + " ms");
            time.advance(ms);
        }

        double assertSame(String user, String clientId) {
            Map<String, String> tags = stock.tags(user, clientId);
            assertEquals(new ArrayList<>(tags.entrySet()), new ArrayList<>(ours.tags(user, clientId).entrySet()),
                () -> "tags of " + user + "/" + clientId + " after " + story());
            double limit = stock.limit(user, clientId);
            assertEquals(limit, ours.limit(user, clientId), () -> "limit of " + user + "/" + clientId + " after " + story());
            return limit;
        }

        private String story() {
            return String.join("; ", script);
        }

        @Override
        public void close() {
            stock.close();
            ours.close();
            callback.close();
            stockMetrics.close();
            ourMetrics.close();
        }
    }

    @ParameterizedTest
    @EnumSource(value = QuotaType.class, names = {"PRODUCE", "FETCH"})
    @Tag("C2")
    @Tag("B4")
    void removingAQuotaRestoresTheNextLessSpecificOne(QuotaType type) {
        String[][] mostSpecificFirst = {
            {"alice", "app"}, {"alice", DEFAULT}, {"alice", null}, {DEFAULT, "app"}, {DEFAULT, DEFAULT}, {DEFAULT, null},
            {null, "app"}, {null, DEFAULT}};
        try (Pair pair = new Pair(type)) {
            for (int level = 0; level < mostSpecificFirst.length; level++) {
                pair.update(mostSpecificFirst[level][0], mostSpecificFirst[level][1], (level + 1) * MB);
            }
            for (int level = 0; level < mostSpecificFirst.length; level++) {
                assertEquals((level + 1) * MB, pair.assertSame("alice", "app"), "at level " + level);
                pair.assertSame("bob", "app");
                pair.assertSame("alice", "other");
                pair.update(mostSpecificFirst[level][0], mostSpecificFirst[level][1], null);
            }
            assertEquals(Long.MAX_VALUE, pair.assertSame("alice", "app"));
        }
    }

    @Test
    @Tag("C2")
    void eachLevelAloneHasItsOwnTagsAndLimits() {
        String[] users = {null, "alice", "ü ser", DEFAULT};
        String[] clientIds = {null, "app", "", "a:b", DEFAULT};
        for (String user : users) {
            for (String clientId : clientIds) {
                if (user != null || clientId != null) {
                    try (Pair pair = new Pair(QuotaType.PRODUCE)) {
                        pair.update(user, clientId, MB);
                        for (String asUser : new String[] {"alice", "bob", "ü ser"}) {
                            for (String asClient : new String[] {"app", "", "a:b", "other", DEFAULT}) {
                                pair.assertSame(asUser, asClient);
                            }
                        }
                    }
                }
            }
        }
    }

    @Test
    @Tag("C2")
    void clientsOfOneUserShareTheUsersQuota() {
        try (Pair pair = new Pair(QuotaType.PRODUCE)) {
            pair.update("alice", null, MB);
            assertEquals(0, pair.record("alice", "one", 9 * MB));
            assertTrue(pair.record("alice", "two", 9 * MB) > 0);
        }
    }

    @Test
    @Tag("B5")
    void clientsWithoutAnIdShareTheQuotaOfTheEmptyOne() {
        try (Pair pair = new Pair(QuotaType.PRODUCE)) {
            pair.update(null, DEFAULT, 2 * MB);
            pair.record("alice", "", 30 * MB);
            pair.assertSame("bob", "");
            assertEquals(pair.stock.tags("alice", ""), pair.ours.tags("bob", ""));
        }
    }

    @Test
    @Tag("C2")
    void randomScriptsOfQuotaChangesAndRequestsShowNoDifference() {
        String[] users = {"alice", "bob", "ü ser", "CN=x,O=y"};
        String[] clientIds = {"app", "other", "", "a:b%2F"};
        int throttled = 0;
        int limited = 0;
        for (int seed = 0; seed < 60; seed++) {
            Random random = new Random(seed);
            try (Pair pair = new Pair(random.nextBoolean() ? QuotaType.PRODUCE : QuotaType.FETCH)) {
                pair.script.add("seed " + seed);
                for (int step = 0; step < 80; step++) {
                    String user = users[random.nextInt(users.length)];
                    String clientId = clientIds[random.nextInt(clientIds.length)];
                    switch (random.nextInt(6)) {
                        case 0, 1 -> {
                            String quotaUser = random.nextInt(3) == 0 ? null : random.nextInt(3) == 0 ? DEFAULT : user;
                            String quotaClient = random.nextInt(3) == 0 && quotaUser != null ? null
                                : random.nextInt(3) == 0 ? DEFAULT : clientId;
                            pair.update(quotaUser, quotaClient, random.nextInt(3) == 0 ? null : (1 + random.nextInt(5)) * MB);
                        }
                        case 2 -> pair.advance(random.nextInt(4000));
                        default -> throttled += pair.record(user, clientId, random.nextInt(40) * MB / 2) > 0 ? 1 : 0;
                    }
                    limited += pair.assertSame(user, clientId) < Long.MAX_VALUE ? 1 : 0;
                }
            }
        }
        assertTrue(throttled > 500, "scripts that throttle too rarely show nothing: " + throttled);
        assertTrue(limited > 1500, "scripts that limit too rarely show nothing: " + limited);
    }

    @Test
    @Tag("B1")
    @Tag("B3")
    void sixtyMegabytesInTenWindowsAtFivePerSecondAreDelayedByTwoSeconds() {
        try (Pair pair = new Pair(QuotaType.PRODUCE)) {
            pair.update(null, "app", 5 * MB);
            for (int second = 0; second < 9; second++) {
                assertEquals(0, pair.record("alice", "app", 5 * MB));
                pair.advance(1000);
            }
            // The tenth window, which the broker's eleventh, just begun, closes.
            pair.advance(1000);
            assertEquals(2000, pair.record("alice", "app", 15 * MB));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {3, 11, 61})
    @Tag("B3")
    void theBoundIsOverAsManyWindowsAsAreConfigured(int windows) {
        // The running window is one more than the document counts.
        double bound = (windows - 1) * 5 * MB;
        try (Pair pair = new Pair(QuotaType.PRODUCE, windows)) {
            pair.update(null, "app", 5 * MB);
            assertEquals(0, pair.record("alice", "app", bound), "as much as the windows hold");
            assertEquals(2000, pair.record("alice", "app", 10 * MB), "and two seconds of the quota more");
        }
    }

    @Test
    @Tag("B2")
    void exactlyTheQuotaIsNotDelayed() {
        try (Pair pair = new Pair(QuotaType.PRODUCE)) {
            pair.update(null, "app", 5 * MB);
            for (int second = 0; second < 9; second++) {
                assertEquals(0, pair.record("alice", "app", 5 * MB));
                pair.advance(1000);
            }
            pair.advance(1000);
            assertEquals(0, pair.record("alice", "app", 5 * MB));
            assertTrue(pair.record("alice", "app", 10_000) > 0);
        }
    }

    @Test
    @Tag("B10")
    void oneClientOverItsQuotaSlowsNoOther() {
        try (Pair pair = new Pair(QuotaType.PRODUCE)) {
            pair.update(null, DEFAULT, MB);
            assertTrue(pair.record("alice", "greedy", 500 * MB) > 0);
            assertEquals(0, pair.record("alice", "modest", MB));
            assertTrue(pair.record("alice", "greedy", MB) > 0);
        }
    }
}
