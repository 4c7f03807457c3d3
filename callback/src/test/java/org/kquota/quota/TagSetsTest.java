package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.List;

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
    void whatNobodyUsesIsForgotten() {
        TagSets sets = new TagSets(new StockQuotas(StockQuotas.LevelMemory.COUNTED), 100);
        TagSet old = sets.of("alice", "old");
        old.touch(10);
        sets.of("alice", "new").touch(20);
        sets.forgetUnusedSince(15, set -> true);
        assertEquals(1, sets.size());
        assertNotEquals(System.identityHashCode(old), System.identityHashCode(sets.of("alice", "old")));
    }
}
