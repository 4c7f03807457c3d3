package org.kquota.govern;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.kquota.decision.State;
import org.kquota.quota.StockQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;
import org.kquota.quota.Tags;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;

/** Thousands of clients, most of whom are looked at in turns, or not at all. */
class GovernorTurnsTest {
    private static final double MB = 1e6;
    private static final GovernorSettings SETTINGS = new GovernorSettings(11, 10, 1_048_576, 10, 1_048_576, 0.05);

    private record Part(ClientQuotaEntity.ConfigEntityType entityType, String name) implements ClientQuotaEntity.ConfigEntity {
    }

    private static ClientQuotaEntity ofClientId(String clientId) {
        return () -> List.of(new Part(ClientQuotaEntity.ConfigEntityType.CLIENT_ID, clientId));
    }

    /** A governor on rates that the test sets, with tag sets of its own. */
    private static final class Told {
        private final StockQuotas quotas = new StockQuotas(StockQuotas.LevelMemory.COUNTED);
        private final TagSets tagSets = new TagSets(quotas, 20_000);
        private final Map<Map<String, String>, Double> rates = new HashMap<>();
        private final TagSet newcomers = new TagSet(Tags.NEWCOMERS);
        private int reads;
        private final Governor governor = new Governor(SETTINGS, quotas, tagSets, new TagSet(Tags.PAUSED), newcomers, this::read);

        private OptionalDouble read(Map<String, String> tags) {
            reads++;
            return OptionalDouble.of(rates.getOrDefault(tags, 0.0));
        }

        TagSet client(int number, double bytesPerSecond) {
            TagSet tagSet = tagSets.of("alice", "app-" + number);
            rates.put(tagSet.tags(), bytesPerSecond);
            return tagSet;
        }

        void looks(int looks, State state, double factor) {
            for (int look = 0; look < looks; look++) {
                governor.step(state, factor, false, 0.1);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"OPEN,1", "THROTTLE,0.5", "PAUSE,0"})
    void clientsWithoutTrafficAreNotRead(State state, double factor) {
        Told told = new Told();
        for (int i = 0; i < 5_000; i++) {
            told.client(i, 0).touch(0);
        }
        TagSet busy = told.client(5_000, 20 * MB);
        for (int look = 0; look < 300; look++) {
            busy.touch(0);
            told.looks(1, State.OPEN, 1);
        }
        told.looks(1, state, factor);
        told.reads = 0;
        for (int look = 0; look < 100; look++) {
            busy.touch(0);
            told.looks(1, state, factor);
        }
        assertTrue(told.reads <= 100 * 4, "the pools, those that share one for want of room, and the busy one: " + told.reads);
        told.client(7, 3 * MB).touch(0);
        told.looks(12, State.OPEN, 1);
        assertEquals(23 * MB, told.governor.figures().observedRate(), 1, "a client that comes back is seen at once");
    }

    @Test
    void inTurnsClientsAreLearntAsIfInEachLook() {
        Told told = new Told();
        int clients = 7_000;
        for (int i = 0; i < clients; i++) {
            told.client(i, 10_000);
        }
        for (int look = 0; look < 1_200; look++) {
            told.tagSets.all().forEach(tagSet -> tagSet.touch(0));
            told.looks(1, State.OPEN, 1);
        }
        assertEquals(1, told.governor.figures().observedRate() / (clients * 10_000.0), 1e-6);
        assertEquals(1, told.governor.figures().baselineRate() / (clients * 10_000.0), 0.01);
        // Ten seconds at twice the rate, the time constant of the average.
        told.rates.replaceAll((tags, rate) -> 20_000.0);
        for (int look = 0; look < 100; look++) {
            told.tagSets.all().forEach(tagSet -> tagSet.touch(0));
            told.looks(1, State.OPEN, 1);
        }
        told.looks(1, State.PAUSE, 0);
        assertEquals(2 - Math.exp(-1), told.governor.figures().baselineRate() / (clients * 10_000.0), 0.06);
    }

    @Test
    @Tag("C2")
    void aNewcomersQuotaIsScaledAtOnceAndOneThatIsSetLaterWithinASecond() {
        Told told = new Told();
        told.client(0, 20 * MB).touch(0);
        for (int i = 1; i < 3_000; i++) {
            told.client(i, 0);
        }
        told.looks(300, State.OPEN, 1);
        told.looks(20, State.THROTTLE, 0.5);
        told.quotas.update(ofClientId("app-5000"), 2 * MB);
        told.quotas.update(ofClientId("app-7"), 2 * MB);
        TagSet isNew = told.client(5_000, 0);
        told.looks(1, State.THROTTLE, 0.5);
        assertTrue(isNew.limit() <= 2 * MB, "limit: " + isNew.limit());
        told.looks(10, State.THROTTLE, 0.5);
        assertTrue(told.client(7, 0).limit() <= 2 * MB);
        assertEquals(TagSet.NO_LIMIT, told.client(8, 0).limit(), "a client without one is in the pool");
        told.looks(1, State.OPEN, 1);
        assertEquals(TagSet.NO_LIMIT, isNew.limit());
    }

    @Test
    void whoIsForgottenIsLookedAtNoMore() {
        Told told = new Told();
        for (int i = 0; i < 3_000; i++) {
            told.client(i, 1_000).touch(i);
        }
        told.looks(50, State.OPEN, 1);
        assertEquals(3_000 + 1, told.governor.figures().tagSets());
        told.tagSets.forgetUnusedSince(2_900, tagSet -> true);
        told.looks(12, State.OPEN, 1);
        assertEquals(100 + 1, told.governor.figures().tagSets());
        assertEquals(100 * 1_000, told.governor.figures().observedRate(), 1);
        told.client(0, 5_000).touch(3_000);
        told.looks(5, State.OPEN, 1);
        assertEquals(101 + 1, told.governor.figures().tagSets());
        assertEquals(100 * 1_000 + 5_000, told.governor.figures().observedRate(), 1);
    }

    @Test
    void aNewcomerWithAQuotaIsLookedAtNoMoreOnceItIsForgottenInThrottle() {
        Told told = new Told();
        told.client(0, 20 * MB).touch(0);
        told.looks(300, State.OPEN, 1);
        told.looks(1, State.THROTTLE, 0.5);
        for (int i = 1; i <= 500; i++) {
            told.quotas.update(ofClientId("app-" + i), 2 * MB);
            told.client(i, 0).touch(10);
        }
        told.looks(12, State.THROTTLE, 0.5);
        assertEquals(501 + 1, told.governor.figures().tagSets());
        told.tagSets.forgetUnusedSince(20, tagSet -> !tagSet.hasBaseline());
        told.looks(12, State.THROTTLE, 0.5);
        assertEquals(1 + 1, told.governor.figures().tagSets());
        told.reads = 0;
        told.looks(10, State.THROTTLE, 0.5);
        assertTrue(told.reads <= 10 * 4, "reads: " + told.reads);
    }
}
