package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.kquota.admission.ClientShare;

class TagSetTest {
    private final TagSet tagSet = new TagSet(Tags.of("alice", "app"));

    @Test
    void aRequestIsCountedAndItsSecondIsKept() {
        assertEquals(0, tagSet.requests());
        tagSet.touch(7);
        tagSet.touch(7);
        tagSet.touch(9);
        assertEquals(3, tagSet.requests());
        assertEquals(9, tagSet.lastTouchSeconds());
    }

    @Test
    void itIsKnownSinceWhenTheBrokerMetersByIt() {
        tagSet.meter(7);
        assertTrue(tagSet.isMeteredSince(7));
        assertFalse(tagSet.isMeteredSince(8));
        tagSet.meter(9);
        assertTrue(tagSet.isMeteredSince(8) && tagSet.isMeteredSince(9));
        assertFalse(tagSet.isMeteredSince(10));
        assertEquals(0, tagSet.requests(), "metering counts no request");
    }

    @Test
    void withoutAGovernorNoClientIsHeld() {
        assertEquals(TagSet.NO_LIMIT, tagSet.limit());
        assertFalse(tagSet.hasBaseline() || tagSet.forgotten());
    }

    @Test
    void theGovernorsFiguresAreKept() {
        tagSet.limit(5_000);
        assertEquals(5_000, tagSet.limit());
        tagSet.hasBaseline(true);
        assertTrue(tagSet.hasBaseline() && !tagSet.forgotten());
        tagSet.hasBaseline(false);
        assertFalse(tagSet.hasBaseline());
    }

    @Test
    void itsShareIsMadeOnce() {
        ClientShare share = tagSet.share();
        assertNotNull(share);
        assertSame(share, tagSet.share());
    }

    @Test
    void itIsShownByItsTags() {
        assertEquals("{user=alice, client-id=app}", tagSet.toString());
    }

    @Test
    void theWorstFactorOfTheLastTenSecondsCounts() {
        TagSet tagSet = new TagSet(Tags.of("alice", "app"));
        assertEquals(1, tagSet.factor(0));
        tagSet.noteFactor(0.5, 100);
        tagSet.noteFactor(0.8, 101);
        assertEquals(0.5, tagSet.factor(110));
        assertEquals(1, tagSet.factor(111));
        tagSet.noteFactor(0.5, 105);
        assertEquals(0.5, tagSet.factor(115), "seen again");
        tagSet.noteFactor(0.2, 106);
        tagSet.noteFactor(0.5, 116);
        assertEquals(0.2, tagSet.factor(116));
        tagSet.noteFactor(0.5, 117);
        assertEquals(0.5, tagSet.factor(117), "the worse one is too old");
        tagSet.noteFactor(0, 118);
        assertEquals(0, tagSet.factor(118));
    }
}
