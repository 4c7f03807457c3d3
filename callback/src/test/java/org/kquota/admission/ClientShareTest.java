package org.kquota.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class ClientShareTest {
    private static final double EXACT = 1e-9;
    private final ClientShare share = new ClientShare(1);

    @Test
    void clientsThatFollowEachOtherBeginAtDifferentPlacesOfARound() {
        share.place(10, 2);
        assertEquals(10 + 2 * 0.618033988749895, share.due(), EXACT);
        ClientShare next = new ClientShare(2);
        next.place(10, 2);
        assertEquals(10 + 2 * 0.23606797749979, next.due(), EXACT);
    }

    @Test
    void whatIsNotKnownOfItIsThatOfTheOthers() {
        assertTrue(share.isNewcomer());
        assertEquals(7, share.weight(7), EXACT);
        assertEquals(500, share.requestBytes(500), EXACT);
        share.know(100, 1_000);
        assertFalse(share.isNewcomer());
        assertEquals(100, share.weight(7), EXACT);
        assertEquals(1_000, share.requestBytes(500), EXACT);
    }

    @Test
    void itIsListedOnceUntilItIsUnlisted() {
        assertTrue(share.ask(100));
        assertFalse(share.ask(200));
        assertTrue(share.askedSince(200));
        assertFalse(share.askedSince(201));
        share.place(1, 0);
        share.refuse();
        assertTrue(share.isPlaced() && share.isRefused());
        share.unlist();
        assertFalse(share.isPlaced() || share.isRefused());
        assertTrue(share.ask(300));
    }

    @Test
    void aRequestMovesItsTurnFromNoEarlierThanItsCredit() {
        share.place(10, 0);
        share.refuse();
        share.charge(1_000, 2, 5);
        assertEquals(12, share.due(), EXACT);
        assertFalse(share.isRefused());
        share.charge(1_000, 2, 20);
        assertEquals(22, share.due(), EXACT);
        share.postpone(5, 20, 24);
        assertEquals(24, share.due(), EXACT, "not beyond the latest");
        share.postpone(5, 20, 23);
        assertEquals(24, share.due(), EXACT, "and not back");
        share.postpone(1, 20, 30);
        assertEquals(25, share.due(), EXACT);
    }

    @Test
    void bytesThatArriveLaterThanTheyWereChargedAreExpected() {
        share.know(100, 5_000);
        share.place(0, 0);
        share.charge(10_000, 1, 0);
        share.arrived(4_000);
        assertEquals(-6_000, share.unexpectedBytes(1), EXACT, "the rest is on its way");
        share.arrived(5_000);
        share.arrived(4_000);
        assertEquals(3_000, share.unexpectedBytes(1), EXACT);
        assertEquals(0, share.unexpectedBytes(1), EXACT);
    }

    @Test
    void noMoreThanTwoRequestsAreOnTheirWay() {
        share.know(100, 5_000);
        share.place(0, 0);
        share.charge(100_000, 1, 0);
        share.arrived(1_000);
        assertEquals(-99_000, share.unexpectedBytes(1), EXACT);
        share.arrived(12_000);
        assertEquals(2_000, share.unexpectedBytes(1), EXACT);
    }
}
