package org.kquota.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class ClaimTest {
    private static final double EXACT = 1e-9;
    private final Claim claim = new Claim(1);

    @Test
    void clientsThatFollowEachOtherBeginAtDifferentPlacesOfARound() {
        claim.place(10, 2);
        assertEquals(10 + 2 * 0.618033988749895, claim.due(), EXACT);
        Claim next = new Claim(2);
        next.place(10, 2);
        assertEquals(10 + 2 * 0.23606797749979, next.due(), EXACT);
    }

    @Test
    void whatIsNotKnownOfItIsThatOfTheOthers() {
        assertTrue(claim.isNewcomer());
        assertEquals(7, claim.weight(7), EXACT);
        assertEquals(500, claim.requestBytes(500), EXACT);
        claim.know(100, 1_000);
        assertFalse(claim.isNewcomer());
        assertEquals(100, claim.weight(7), EXACT);
        assertEquals(1_000, claim.requestBytes(500), EXACT);
    }

    @Test
    void itIsListedOnceUntilItIsUnlisted() {
        assertTrue(claim.ask(100));
        assertFalse(claim.ask(200));
        assertTrue(claim.askedSince(200));
        assertFalse(claim.askedSince(201));
        claim.place(1, 0);
        claim.refuse();
        assertTrue(claim.isPlaced() && claim.isRefused());
        claim.unlist();
        assertFalse(claim.isPlaced() || claim.isRefused());
        assertTrue(claim.ask(300));
    }

    @Test
    void aRequestMovesItsTurnFromNoEarlierThanItsCredit() {
        claim.place(10, 0);
        claim.refuse();
        claim.charge(1_000, 2, 5);
        assertEquals(12, claim.due(), EXACT);
        assertFalse(claim.isRefused());
        claim.charge(1_000, 2, 20);
        assertEquals(22, claim.due(), EXACT);
        claim.postpone(5, 20, 24);
        assertEquals(24, claim.due(), EXACT, "not beyond the latest");
        claim.postpone(5, 20, 23);
        assertEquals(24, claim.due(), EXACT, "and not back");
        claim.postpone(1, 20, 30);
        assertEquals(25, claim.due(), EXACT);
    }

    @Test
    void bytesThatArriveLaterThanTheyWereChargedAreExpected() {
        claim.know(100, 5_000);
        claim.place(0, 0);
        claim.charge(10_000, 1, 0);
        claim.arrived(4_000);
        assertEquals(-6_000, claim.unexpectedBytes(1), EXACT, "the rest is on its way");
        claim.arrived(5_000);
        claim.arrived(4_000);
        assertEquals(3_000, claim.unexpectedBytes(1), EXACT);
        assertEquals(0, claim.unexpectedBytes(1), EXACT);
    }

    @Test
    void noMoreThanTwoRequestsAreOnTheirWay() {
        claim.know(100, 5_000);
        claim.place(0, 0);
        claim.charge(100_000, 1, 0);
        claim.arrived(1_000);
        assertEquals(-99_000, claim.unexpectedBytes(1), EXACT);
        claim.arrived(12_000);
        assertEquals(2_000, claim.unexpectedBytes(1), EXACT);
    }
}
