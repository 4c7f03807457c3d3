package org.kquota.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.Set;

class RequestsUnderWayTest {
    private static final long MS = 1_000_000L;
    /** A clock that overflows, as System.nanoTime() may. */
    private static final long T = Long.MAX_VALUE - 10 * MS;

    private final RequestsUnderWay underWay = new RequestsUnderWay();

    private void refuse(long ms, String... topics) {
        underWay.refused("one", Set.of(topics), T + ms * MS);
    }

    private boolean refuses(String connection, long ms, String... topics) {
        return underWay.refuses(connection, Set.of(topics), T + ms * MS);
    }

    @Test
    void whereNothingWasRefusedNothingIsAsked() {
        assertFalse(underWay.any());
        assertFalse(refuses("one", 0, "orders"));
    }

    @Test
    void aRequestRightBehindARefusedOneIsRefusedOnlyOnItsConnectionAndOnlyWithATopicInCommon() {
        refuse(0, "orders", "clicks");
        assertTrue(underWay.any());
        assertFalse(refuses("two", 1, "orders"));
        assertFalse(refuses("one", 1, "payments"));
        assertFalse(refuses("one", 1));
        assertTrue(refuses("one", 2, "payments", "clicks"));
        assertTrue(refuses("one", 3, "payments"), "its payments were refused with it");
        assertTrue(refuses("one", 4, "orders"));
    }

    @Test
    void aClientThatWaitedForItsAnswerIsNotRefused() {
        refuse(0, "orders");
        assertTrue(refuses("one", 60, "orders"), "each refusal has others behind it");
        assertTrue(refuses("one", 120, "orders"));
        assertFalse(refuses("one", 181, "orders"));
    }

    @Test
    void aClientThatNeverWaitsIsHeldForAQuarterOfASecond() {
        refuse(0, "orders");
        for (int ms = 10; ms <= 250; ms += 10) {
            assertTrue(refuses("one", ms, "orders"), "after " + ms);
        }
        assertFalse(refuses("one", 251, "orders"));
        refuse(252, "orders");
        assertTrue(refuses("one", 300, "orders"), "a refusal for a reason of its own begins again");
    }

    /** As of a client with dozens of partitions that are paused, each of which it tries again by itself. */
    @Test
    void refusalsOfOneTopicDoNotHoldAnotherForLonger() {
        refuse(0, "orders");
        for (int ms = 20; ms <= 240; ms += 20) {
            refuse(ms, "clicks");
            assertTrue(refuses("one", ms + 10, "orders"), "after " + ms);
        }
        refuse(260, "clicks");
        assertFalse(refuses("one", 261, "orders"));
        assertTrue(refuses("one", 262, "clicks", "payments"));
        for (int ms = 280; ms <= 500; ms += 20) {
            refuse(ms, "clicks");
        }
        assertTrue(refuses("one", 510, "payments"), "since 260, the time of those that they stood behind");
        assertFalse(refuses("one", 511, "payments"));
    }

    @Test
    void anotherRefusalDoesNotForgetTheTopicsOfTheOneBefore() {
        refuse(0, "orders");
        refuse(10, "clicks");
        assertTrue(refuses("one", 20, "orders"));
        refuse(100, "payments");
        assertFalse(refuses("one", 110, "orders"), "its client has waited since");
    }

    @Test
    void whatIsOverIsForgotten() {
        refuse(0, "orders");
        underWay.keep(T + 900 * MS);
        assertTrue(underWay.any());
        underWay.refused("two", Set.of("orders"), T + 900 * MS);
        underWay.keep(T + 1_001 * MS);
        assertTrue(underWay.any());
        assertEquals(1, underWay.connections());
        underWay.keep(T + 1_901 * MS);
        assertFalse(underWay.any());
        assertEquals(0, underWay.connections());
    }
}
