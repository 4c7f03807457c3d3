package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntityType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.kquota.quota.StockQuotas.LevelMemory;
import org.kquota.quota.StockQuotas.Pair;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;

/** The order of Kafka's eight levels of quotas, against the rule in its plainest form. */
class StockQuotasTest {
    private static final String DEFAULT = "<default>";
    /** The entity of a quota and how its clients are metered, in the order of KIP-257. */
    private static final List<Level> MOST_SPECIFIC_FIRST = List.of(
        new Level("alice", "app"), new Level("alice", DEFAULT), new Level("alice", null), new Level(DEFAULT, "app"),
        new Level(DEFAULT, DEFAULT), new Level(DEFAULT, null), new Level(null, "app"), new Level(null, DEFAULT));

    private record Part(ConfigEntityType entityType, String name) implements ClientQuotaEntity.ConfigEntity {
    }

    private record Level(String user, String clientId) {
        ClientQuotaEntity entity() {
            List<ClientQuotaEntity.ConfigEntity> parts = new ArrayList<>();
            if (user != null) {
                parts.add(DEFAULT.equals(user) ? new Part(ConfigEntityType.DEFAULT_USER, "") : new Part(ConfigEntityType.USER, user));
            }
            if (clientId != null) {
                parts.add(DEFAULT.equals(clientId) ? new Part(ConfigEntityType.DEFAULT_CLIENT_ID, "") : new Part(ConfigEntityType.CLIENT_ID, clientId));
            }
            return () -> parts;
        }

        /** Which of the three kinds of quotas it is. */
        int kind() {
            return user == null ? 0 : clientId == null ? 1 : 2;
        }

        Pair pair() {
            return new Pair(user == null ? "" : "alice", user != null && clientId == null ? "" : "app");
        }

        boolean names() {
            return "alice".equals(user) || "app".equals(clientId);
        }
    }

    /** A client of a kind of quotas alone is metered by that kind, whether it has one of them or not; otherwise by the most specific that it has. */
    private static Pair expected(Set<Level> quotas, Set<Integer> kindsInUse) {
        if (kindsInUse.size() == 1) {
            return MOST_SPECIFIC_FIRST.stream().filter(level -> kindsInUse.contains(level.kind())).findFirst().orElseThrow().pair();
        }
        return MOST_SPECIFIC_FIRST.stream().filter(quotas::contains).findFirst().map(Level::pair).orElse(new Pair("", "app"));
    }

    @ParameterizedTest
    @EnumSource(LevelMemory.class)
    void theMostSpecificQuotaCountsWhateverCameAndWent(LevelMemory memory) {
        Set<Integer> sizes = new HashSet<>();
        for (int seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            StockQuotas stock = new StockQuotas(memory);
            Set<Level> quotas = new HashSet<>();
            Set<Integer> everUsed = new HashSet<>();
            List<String> script = new ArrayList<>();
            int levels = 1 + random.nextInt(8);
            for (int step = 0; step < 20; step++) {
                Level level = MOST_SPECIFIC_FIRST.get(random.nextInt(levels));
                if (random.nextBoolean()) {
                    stock.update(level.entity(), 1 + MOST_SPECIFIC_FIRST.indexOf(level));
                    quotas.add(level);
                    script.add("+" + level);
                } else {
                    stock.remove(level.entity());
                    quotas.remove(level);
                    script.add("-" + level);
                }
                everUsed.add(level.kind());
                Set<Integer> kinds = memory == LevelMemory.STICKY ? everUsed
                    : new HashSet<>(quotas.stream().map(Level::kind).toList());
                Pair pair = stock.meteredAs("alice", "app");
                assertEquals(expected(quotas, kinds), pair, () -> memory + " " + script);
                Double limit = MOST_SPECIFIC_FIRST.stream().filter(quotas::contains).filter(each -> each.pair().equals(pair)).findFirst()
                    .map(each -> 1.0 + MOST_SPECIFIC_FIRST.indexOf(each)).orElse(null);
                assertEquals(limit, stock.limit(pair.user(), pair.clientId()), () -> memory + " " + script);
                boolean names = MOST_SPECIFIC_FIRST.stream().filter(quotas::contains).findFirst().map(Level::names).orElse(false);
                assertEquals(names, stock.names("alice", "app"), () -> memory + " " + script);
                sizes.add(quotas.size());
            }
        }
        assertTrue(sizes.containsAll(IntStream.rangeClosed(0, 6).boxed().toList()), "too few combinations show nothing: " + sizes);
    }

    @Test
    void aQuotaThatIsSetTwiceIsGoneWhenItIsRemovedOnce() {
        StockQuotas stock = new StockQuotas(LevelMemory.COUNTED);
        ClientQuotaEntity user = new Level("alice", null).entity();
        stock.update(user, 1);
        stock.update(user, 2);
        assertEquals(new Pair("bob", ""), stock.meteredAs("bob", "app"));
        stock.remove(user);
        assertEquals(new Pair("", "app"), stock.meteredAs("bob", "app"), "the level is no longer in use");
        stock.remove(user);
        stock.update(user, 3);
        assertEquals(new Pair("bob", ""), stock.meteredAs("bob", "app"), "it is in use again, although it was removed twice");
    }

    @Test
    void aQuotaOfAnotherLeavesItsLevelInUse() {
        StockQuotas stock = new StockQuotas(LevelMemory.COUNTED);
        stock.update(new Level("alice", null).entity(), 1);
        stock.update(new Level("bob", null).entity(), 2);
        stock.update(new Level(null, "app").entity(), 3);
        stock.remove(new Level("alice", null).entity());
        assertEquals(new Pair("bob", ""), stock.meteredAs("bob", "app"));
        stock.remove(new Level("bob", null).entity());
        assertEquals(new Pair("", "app"), stock.meteredAs("bob", "app"));
        assertEquals(3, stock.limit("", "app"));
        assertFalse(stock.names("bob", "other"));
    }

    @Test
    void tagsWithoutAUserAndAClientIdHaveNoLimit() {
        StockQuotas stock = new StockQuotas(LevelMemory.COUNTED);
        MOST_SPECIFIC_FIRST.forEach(level -> stock.update(level.entity(), 1));
        assertNull(stock.limit("", ""));
    }
}
