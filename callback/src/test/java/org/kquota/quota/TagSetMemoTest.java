package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

class TagSetMemoTest {
    private static final KafkaPrincipal ALICE = new KafkaPrincipal("User", "alice");
    private final TagSetMemo memo = new TagSetMemo();

    private static TagSet tagSet(String clientId) {
        return new TagSet(Tags.of("", clientId));
    }

    private TagSet remember(KafkaPrincipal principal, String clientId) {
        TagSet tagSet = tagSet(clientId);
        memo.remember(memo.generation(), new TagSetMemo.Known(principal, clientId, tagSet));
        return tagSet;
    }

    private TagSet find(KafkaPrincipal principal, String clientId) {
        TagSetMemo.Known known = memo.generation().find(principal, clientId);
        assertTrue(known == null || known.tags().equals(known.tagSet().tags()));
        return known == null ? null : known.tagSet();
    }

    @Test
    void whoIsRememberedIsFoundByEqualNames() {
        TagSet app = remember(ALICE, "app");
        assertSame(app, find(new KafkaPrincipal("User", "alice"), new String("app")));
        assertNull(find(ALICE, "app2"));
        assertNull(find(new KafkaPrincipal("User", "bob"), "app"));
        assertNull(find(new KafkaPrincipal("Group", "alice"), "app"));
        TagSet other = remember(ALICE, "app");
        assertSame(other, find(ALICE, "app"));
        assertEquals(1, memo.size());
    }

    @Test
    void nothingOutlivesAChange() {
        remember(ALICE, "app");
        memo.forget();
        assertNull(find(ALICE, "app"));
        assertEquals(0, memo.size());
    }

    @Test
    void whatWasWorkedOutBeforeAChangeIsNotRememberedAfterIt() {
        for (int clients : new int[] {1, 1_000}) {
            TagSetMemo.Generation before = memo.generation();
            memo.forget();
            for (int i = 0; i < clients; i++) {
                memo.remember(before, new TagSetMemo.Known(ALICE, "app-" + i, tagSet("app-" + i)));
                assertNull(find(ALICE, "app-" + i));
            }
        }
    }

    @Test
    void allOfTenThousandClientsAreFoundOnceTheyHaveCome() {
        int missed = 0;
        for (int round = 0; round < 4; round++) {
            missed = 0;
            for (int i = 0; i < 10_000; i++) {
                KafkaPrincipal principal = new KafkaPrincipal("User", "user-" + i);
                TagSet tagSet = find(principal, "client-" + i);
                assertTrue(tagSet == null || tagSet.tags().get(Tags.CLIENT_ID).equals("client-" + i));
                if (tagSet == null) {
                    remember(principal, "client-" + i);
                    missed++;
                }
            }
        }
        assertTrue(missed < 10, missed + " had to make room for one another");
    }

    /** With 64 places 32 have room enough. */
    @Test
    void thereIsRoomForTwiceAsManyAsAreRememberedAndNoneIsLostWhenItGrows() {
        Map<String, TagSet> remembered = new HashMap<>();
        for (int i = 1; i <= 50; i++) {
            assertEquals(i <= 33 ? 64 : 128, memo.places(), "before the client " + i);
            remembered.put("app-" + i, remember(ALICE, "app-" + i));
        }
        assertEquals(50, memo.size());
        remembered.forEach((id, tagSet) -> assertSame(tagSet, find(ALICE, id)));
    }

    /** Clients can send any client id. */
    @Test
    @Tag("C8")
    void inventedClientIdsAreBoundedInNumberAndLength() {
        for (int i = 0; i < 4 * TagSetMemo.MAX_PLACES; i++) {
            TagSet tagSet = remember(ALICE, "invented-" + i);
            assertSame(tagSet, find(ALICE, "invented-" + i), "the last one is there, whether it displaces another or not");
        }
        assertTrue(memo.size() <= TagSetMemo.MAX_PLACES, memo.size() + " are remembered");
        assertEquals(TagSetMemo.MAX_PLACES, memo.places());
        for (int length : new int[] {129, 10_000}) {
            remember(ALICE, "x".repeat(length));
            assertNull(find(ALICE, "x".repeat(length)));
        }
        assertSame(remember(ALICE, "x".repeat(128)), find(ALICE, "x".repeat(128)));
    }

    @Test
    void clientIdsWithTheSameHashHaveRoomForOneAnother() {
        List<String> same = new ArrayList<>(List.of(""));
        for (int bits = 0; bits < 3; bits++) {
            List<String> longer = new ArrayList<>();
            same.forEach(id -> longer.addAll(List.of(id + "Aa", id + "BB")));
            same = longer;
        }
        Map<String, TagSet> remembered = new HashMap<>();
        same.forEach(id -> remembered.put(id, remember(ALICE, id)));
        assertEquals(8, remembered.size());
        remembered.forEach((id, tagSet) -> assertSame(tagSet, find(ALICE, id)));
    }
}
