package org.kquota.metering;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.kquota.quota.StockQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import java.util.Set;

/** The meters of all clients. */
class MetersTest {
    private static final double EXACT = 1e-9;

    private final TagSets tagSets = new TagSets(new StockQuotas(StockQuotas.LevelMemory.COUNTED), 1_000);
    private final Meters meters = new Meters();
    private final List<Meter> added = new ArrayList<>();

    private Meter add(double rate) {
        TagSet tagSet = tagSets.of("alice", "app-" + added.size());
        Meter meter = new Meter(tagSet, () -> OptionalDouble.of(rate), 0, 10, 1e6, false);
        meters.add(meter);
        added.add(meter);
        return meter;
    }

    private void forget(Meter... those) {
        Set<TagSet> forgotten = Set.copyOf(List.of(those).stream().map(Meter::tagSet).toList());
        tagSets.forgetUnusedSince(1, forgotten::contains);
    }

    @Test
    void whatTheyProduceIsSummedAsItWasSeenLast() {
        for (int i = 0; i < 200; i++) {
            add(i);
        }
        assertEquals(200, meters.size());
        assertEquals(0, meters.observed());
        for (Meter meter : added) {
            meter.observe(10, true);
            meter.learn(10, 100, false);
        }
        assertEquals(0, meters.observed(), "it is not taken over yet");
        added.forEach(meters::keep);
        assertEquals(199 * 200 / 2, meters.observed(), EXACT);
        assertEquals(199 * 200 / 2, meters.baselines(), 1e-6);
        assertEquals(added, meters.stream().toList());
    }

    @ParameterizedTest
    @CsvSource({"10,3,4", "9,3,3", "1,10,1", "0,10,0"})
    void inSoManyLooksAllHaveTheirTurn(int clients, int looks, int turn) {
        for (int i = 0; i < clients; i++) {
            add(0);
        }
        assertEquals(turn, meters.turn(looks));
    }

    @Test
    void eachHasItsTurn() {
        assertNull(meters.next());
        add(0);
        add(0);
        add(0);
        for (int round = 0; round < 2; round++) {
            for (Meter meter : added) {
                assertSame(meter, meters.next());
            }
        }
    }

    @Test
    void thoseOfForgottenTagSetsAreDroppedAndTheLastTakesTheirPlace() {
        for (int i = 0; i < 4; i++) {
            Meter meter = add(100 * (i + 1));
            meter.observe(10, true);
            meters.keep(meter);
        }
        forget(added.get(0), added.get(3));
        assertSame(added.get(2), meters.next());
        assertEquals(0, added.get(2).place());
        assertSame(added.get(1), meters.next());
        assertEquals(2, meters.size());
        assertEquals(500, meters.observed());
        assertSame(added.get(2), meters.next());
        forget(added.get(1));
        assertNull(meters.next(), "it was the last of the round");
        assertEquals(1, meters.size());
        assertSame(added.get(2), meters.next());
    }
}
