package org.kquota.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The law of admission by itself, in figures that are worked out by hand. */
class BudgetTest {
    private static final double EXACT = 1e-9;
    private static final long SECOND = 1_000_000_000L;
    private static final double NOBODY = Double.POSITIVE_INFINITY;
    /** Half of 1 MB/s, of which 80 % land; exempt principals land 0.1 MB/s in addition. */
    private static final Target HALF = new Target(0.5, 1e6, 1.2e6, 0.05, 0.8, 1e5);
    /** Ten clients that had 1 MB/s together, with requests of 10 kB. */
    private static final Demand TEN = new Demand(1e6, 0, 1e5, 2e4, 10, NOBODY, 0);
    private static final Budget FIRST = Budget.begin(HALF, TEN, 5_000, 7, SECOND);

    private static Demand demand(double knownWeight, int newcomers, double roundBytes, double behind, double waitingBytes) {
        return new Demand(knownWeight, newcomers, roundBytes, 2e4, 10, behind, waitingBytes);
    }

    @Test
    @Tag("A7")
    void theAllowedBytesGrowByTheTarget() {
        assertEquals(5_000, FIRST.allowed(SECOND), EXACT);
        assertEquals(5_000, FIRST.allowed(0), EXACT, "a request that looked at the clock before");
        assertEquals(5_000 + 0.5 * 400e3, FIRST.allowed(SECOND + SECOND / 2), EXACT);
        assertEquals(1, Budget.begin(new Target(1e-9, 1e6, 1e6, 0.05, 0.8, 0), TEN, 0, 0, 0).allowed(SECOND), EXACT, "a byte a second at least");
    }

    @Test
    void theClockOfTurnsPassesAsFastAsAllCanBeServed() {
        assertEquals(7.25, FIRST.turn(SECOND + SECOND / 2), EXACT);
        assertEquals(0.1, FIRST.cost(10e3, 100e3), EXACT);
        assertEquals(1, FIRST.cost(1e6, 100e3), EXACT, "at most a round of 2 s");
        assertEquals(7 - 1.5, FIRST.earliest(7), EXACT, "credit of 3 s");
        assertEquals(7 + 1, FIRST.latest(7), EXACT);
        assertEquals(0, FIRST.kept(7, 7), EXACT, "no client waits");
        assertEquals(10e3, FIRST.usualBytes(), EXACT);
        assertEquals(50e3, FIRST.newcomerWeight(), EXACT, "the smallest share, should one come");
        double slow = Budget.begin(HALF, demand(1e6, 0, 1e6, NOBODY, 0), 0, 0, 0).round();
        assertEquals(2.5, slow, EXACT, "5 s are two requests of each");
        assertEquals(0.5, Budget.begin(HALF, demand(0, 0, 0, NOBODY, 0), 0, 0, 0).pace(), EXACT, "without any client");
    }

    @Test
    @Tag("A7")
    void unusedBytesHurryTheClockAndWhatIsKeptForThoseThatWaitIsNotUnused() {
        Budget next = FIRST.next(HALF, demand(1e6, 0, 1e5, 6.8, 60e3), 300e3, 2 * SECOND);
        assertEquals(505e3, next.allowedBytes(), EXACT, "a second of the target, and what exempt principals landed");
        double unusedSeconds = (505e3 - 300e3 - 60e3) / 400e3;
        assertEquals(0.5 * (1 + unusedSeconds / 0.25), next.turnRate(), EXACT);
        assertEquals(6.8 + 0.5 * (1 + 2 * unusedSeconds), next.turnMax(), EXACT, "the clock waits for who is furthest behind");
        assertEquals(next.turnMax(), next.turn(4 * SECOND), EXACT);
        assertEquals(60e3 * 0.4 / 0.7, next.kept(7.2, 7.5), 1e-6);
        assertEquals(0, next.kept(6.8, 6.8), EXACT, "who is furthest behind waits for none");
        assertEquals(0.3 * 400e3, FIRST.next(HALF, demand(1e6, 0, 1e5, 6.8, 1e6), 0, 2 * SECOND).waitingBytes(), EXACT);
    }

    @Test
    @Tag("A7")
    void whatIsUnusedForLongIsLostAndTheClockHasALargestPace() {
        Budget late = FIRST.next(HALF, demand(1e6, 0, 1e5, 6.8, 60e3), 300e3, 101 * SECOND);
        assertEquals(300e3 + 2 * 400e3 + 60e3 + 2e4, late.allowedBytes(), EXACT);
        assertEquals(0.5 * 3, late.turnRate(), EXACT);
        Budget over = FIRST.next(HALF, demand(1e6, 0, 1e5, 6.8, 0), 900e3, 2 * SECOND);
        assertEquals(0, over.turnRate(), EXACT, "it stands while more has landed than may have");
        assertEquals(7.5, over.turnMax(), EXACT, "and does not go back");
        assertEquals(505e3, over.allowedBytes(), EXACT);
    }

    /** Known weight, and what two newcomers have each. */
    @ParameterizedTest
    @CsvSource({"1000000,100000", "1190000,30000", "2000000,30000"})
    @Tag("A7")
    void newcomersShareWhatIsLeftAndAtLeastTheSmallestPart(double knownWeight, double each) {
        Budget budget = Budget.begin(HALF, demand(knownWeight, 2, 1e5, NOBODY, 0), 0, 0, 0);
        assertEquals(each, budget.newcomerWeight(), EXACT);
        assertEquals(0.5 * 1.2e6 / (knownWeight + 2 * each), budget.pace(), EXACT);
        assertEquals(0.5 * 1.2e6 * 0.8, budget.bytesPerSecond(), EXACT);
    }

    @Test
    void thereIsRoomForARequestIfThereIsForHalfOfIt() {
        assertTrue(Budget.hasRoom(5_000, 10_000));
        assertFalse(Budget.hasRoom(4_999, 10_000));
    }

    @Test
    void withoutKnowledgeARequestIsOfKafkasDefaultSize() {
        assertEquals(16_384, Demand.NONE.usualRequestBytes(), EXACT);
        assertEquals(16_384, new Demand(0, 0, 1e5, 0, 0, NOBODY, 0).usualRequestBytes(), EXACT);
        assertEquals(16_384, new Demand(0, 0, 0, 0, 3, NOBODY, 0).usualRequestBytes(), EXACT);
        assertEquals(10e3, TEN.usualRequestBytes(), EXACT);
    }

    @ParameterizedTest
    @CsvSource({"1,2,false,1", "1,2,true,2", "3,2,true,3", "0,2,false,2", "3,2,false,3"})
    void theRateBeforeIsThatOfTheKnownClientsAsLongAsTheyAreAlone(double known, double total, boolean withNewcomers, double expected) {
        assertEquals(expected, new Target(0.5, known, total, 0.05, 1, 0).unthrottled(withNewcomers), EXACT);
    }
}
