package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Queue;

class TagSetsTest {
    private record Part(ClientQuotaEntity.ConfigEntityType entityType, String name) implements ClientQuotaEntity.ConfigEntity {
    }

    private static ClientQuotaEntity client(String name) {
        return () -> List.of(new Part(ClientQuotaEntity.ConfigEntityType.CLIENT_ID, name));
    }

    @Test
    void clientsBeyondTheBoundShareOneTagSet() {
        TagSets sets = new TagSets(new StockQuotas(StockQuotas.LevelMemory.COUNTED), 100);
        for (int i = 0; i < 100; i++) {
            assertEquals("client-" + i, sets.of("alice", "client-" + i).tags().get(Tags.CLIENT_ID));
        }
        assertSame(sets.overflow(), sets.of("alice", "client-100"));
        assertSame(sets.overflow(), sets.of("bob", "client-101"));
        assertSame(sets.of("alice", "client-7"), sets.knownOrOverflow(new StockQuotas.Pair("", "client-7")));
        assertSame(sets.overflow(), sets.knownOrOverflow(new StockQuotas.Pair("", "client-101")));
        assertEquals(100, sets.size());
    }

    @Test
    @Tag("C2")
    void aClientWithAQuotaHasItsOwnEvenBeyondTheBound() {
        StockQuotas quotas = new StockQuotas(StockQuotas.LevelMemory.COUNTED);
        quotas.update(client("limited"), 1e6);
        TagSets sets = new TagSets(quotas, 1);
        sets.of("alice", "first");
        assertSame(sets.overflow(), sets.of("alice", "second"));
        assertEquals("limited", sets.of("alice", "limited").tags().get(Tags.CLIENT_ID));
    }

    @Test
    void tagSetsAreFoundByTheirTags() {
        TagSets sets = new TagSets(new StockQuotas(StockQuotas.LevelMemory.COUNTED), 1);
        assertNull(sets.find("", "app"));
        assertNull(sets.knownOrOverflow(new StockQuotas.Pair("", "app")), "there is room for a new one");
        TagSet app = sets.of("alice", "app");
        assertSame(app, sets.find("", "app"));
        assertSame(app, sets.of("bob", "app"), "no client has a quota by user");
        assertSame(sets.overflow(), sets.find(Tags.OVERFLOW.get(Tags.USER), ""));
        assertEquals(List.of(app), List.copyOf(sets.all()));
    }

    @Test
    void whoWatchesGetsThoseThatAreThereAndEachNewOne() {
        TagSets sets = new TagSets(new StockQuotas(StockQuotas.LevelMemory.COUNTED), 2);
        TagSet one = sets.of("alice", "one");
        Queue<TagSet> watched = sets.watch();
        assertSame(one, watched.poll());
        TagSet two = sets.of("alice", "two");
        sets.of("alice", "one");
        sets.of("alice", "beyond");
        assertSame(two, watched.poll());
        assertNull(watched.poll());
    }

    @Test
    @Tag("C2")
    void clientsWithAQuotaTakeNoPlaceOfThoseWithout() {
        StockQuotas quotas = new StockQuotas(StockQuotas.LevelMemory.COUNTED);
        TagSets sets = new TagSets(quotas, 10);
        quotas.whenChanged(sets::quotasChanged);
        for (int i = 0; i < 30; i++) {
            quotas.update(client("limited-" + i), 1e6);
            sets.of("alice", "limited-" + i);
        }
        for (int i = 0; i < 10; i++) {
            assertEquals("free-" + i, sets.of("alice", "free-" + i).tags().get(Tags.CLIENT_ID));
        }
        assertSame(sets.overflow(), sets.of("alice", "free-10"));

        quotas.update(client("free-0"), 1e6);
        sets.recount();
        assertEquals("free-10", sets.of("alice", "free-10").tags().get(Tags.CLIENT_ID), "there is room again");
        assertSame(sets.overflow(), sets.of("alice", "free-11"));
        quotas.remove(client("free-0"));
        sets.forgetUnusedSince(1, set -> set.tags().get(Tags.CLIENT_ID).equals("free-1"));
        sets.recount();
        assertSame(sets.overflow(), sets.of("alice", "free-11"), "one has lost its quota, another one is gone");
        sets.forgetUnusedSince(1, set -> set.tags().get(Tags.CLIENT_ID).equals("free-2"));
        sets.recount();
        assertEquals("free-11", sets.of("alice", "free-11").tags().get(Tags.CLIENT_ID));
    }

    @Test
    void unusedTagSetsAreForgotten() {
        TagSets sets = new TagSets(new StockQuotas(StockQuotas.LevelMemory.COUNTED), 100);
        TagSet old = sets.of("alice", "old");
        old.touch(10);
        sets.of("alice", "new").touch(20);
        assertFalse(sets.forgetUnusedSince(10, set -> true), "10 is not before 10");
        assertFalse(sets.forgetUnusedSince(15, set -> false));
        assertEquals(2, sets.size());
        TagSet young = sets.find("", "new");
        assertTrue(sets.forgetUnusedSince(15, set -> true));
        assertEquals(1, sets.size());
        assertTrue(old.forgotten());
        assertFalse(young.forgotten());
        assertNotEquals(System.identityHashCode(old), System.identityHashCode(sets.of("alice", "old")));
    }
}
