package org.kquota.decision;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;

class TopicFactorsTest {
    private static final TopicFactors FACTORS = new TopicFactors(Map.of("orders", 0.0, "clicks", 0.3, "views", 0.6, "logs", 1.0), 1);

    @Test
    void aTopicHasItsFactorAndAnyOtherThatOfTheOthers() {
        assertEquals(0, FACTORS.of("orders"));
        assertEquals(0.3, FACTORS.of("clicks"));
        assertEquals(1, FACTORS.of("unnamed"));
        assertEquals(0.2, new TopicFactors(Map.of(), 0.2).of("unnamed"));
        assertTrue(FACTORS.names("logs"));
        assertFalse(FACTORS.names("unnamed"));
    }

    @Test
    void itKnowsHowManyArePausedAndThrottledAndTheSlowest() {
        assertEquals(1, FACTORS.paused());
        assertEquals(2, FACTORS.throttled());
        assertEquals(0.3, FACTORS.slowest());
        assertEquals(1, new TopicFactors(Map.of("orders", 0.0), 0).slowest(), "a paused topic is not slowed");
        assertEquals(0.2, new TopicFactors(Map.of("orders", 0.5), 0.2).slowest());
    }

    @Test
    void laterChangesOfTheGivenMapHaveNoEffect() {
        Map<String, Double> given = new HashMap<>(Map.of("orders", 0.5));
        TopicFactors factors = new TopicFactors(given, 1);
        given.put("orders", 0.0);
        assertEquals(0.5, factors.of("orders"));
    }

    @Test
    void equalFactorsAreEqual() {
        assertEquals(FACTORS, new TopicFactors(Map.of("orders", 0.0, "clicks", 0.3, "views", 0.6, "logs", 1.0), 1));
        assertEquals(FACTORS.hashCode(), new TopicFactors(Map.of("orders", 0.0, "clicks", 0.3, "views", 0.6, "logs", 1.0), 1).hashCode());
        assertNotEquals(FACTORS, new TopicFactors(Map.of("orders", 0.0, "clicks", 0.3, "views", 0.6, "logs", 1.0), 0.5));
        assertNotEquals(FACTORS, new TopicFactors(Map.of("orders", 0.0), 1));
        assertEquals("{orders=0.5}, others 1.0", new TopicFactors(Map.of("orders", 0.5), 1).toString());
    }

    @Test
    void differentFactorsHaveDifferentHashes() {
        assertNotEquals(new TopicFactors(Map.of("orders", 0.0), 1).hashCode(), new TopicFactors(Map.of("clicks", 0.0), 1).hashCode());
        assertNotEquals(new TopicFactors(Map.of("orders", 0.0), 1).hashCode(), new TopicFactors(Map.of("orders", 0.0), 0.5).hashCode());
        assertEquals(Map.of("orders", 0.5), new TopicFactors(Map.of("orders", 0.5), 1).named());
    }

    @Test
    void statesAreTheSameWhileNoTopicChangesItsState() {
        assertTrue(FACTORS.sameStates(new TopicFactors(Map.of("orders", 0.0, "clicks", 0.9, "views", 0.1), 1)), "logs are not held there either");
        assertFalse(FACTORS.sameStates(new TopicFactors(Map.of("clicks", 0.3, "views", 0.6), 1)), "orders are released");
        assertFalse(FACTORS.sameStates(new TopicFactors(Map.of("orders", 0.1, "clicks", 0.3, "views", 0.6), 1)));
        assertFalse(FACTORS.sameStates(new TopicFactors(Map.of("orders", 0.0, "clicks", 0.3, "views", 0.6, "logs", 0.5), 1)));
        assertFalse(new TopicFactors(Map.of(), 1).sameStates(FACTORS));
        assertFalse(FACTORS.sameStates(new TopicFactors(Map.of("orders", 0.0, "clicks", 0.3, "views", 0.6, "logs", 1.0), 0)));
        assertFalse(FACTORS.sameStates(null));
    }

    /** The counts and the smallest factor are those of a plain count, whatever the factors. */
    @Test
    void randomFactorsAreCountedRight() {
        Random random = new Random(1);
        for (int i = 0; i < 500; i++) {
            Map<String, Double> named = new HashMap<>();
            for (int topic = random.nextInt(6); topic > 0; topic--) {
                named.put("t" + topic, random.nextInt(5) / 4.0);
            }
            TopicFactors factors = new TopicFactors(named, 1);
            assertEquals(named.values().stream().filter(factor -> factor == 0).count(), factors.paused());
            assertEquals(named.values().stream().filter(factor -> factor > 0 && factor < 1).count(), factors.throttled());
            assertEquals(named.values().stream().filter(factor -> factor > 0).mapToDouble(factor -> factor).min().orElse(1), factors.slowest());
            assertTrue(factors.sameStates(new TopicFactors(named, 1)));
        }
    }

    @Test
    void raisedFactorsAreTheSameObjectForTheSameFloor() {
        assertSame(FACTORS, FACTORS.withFloor(0.3), "none is below it");
        TopicFactors raised = FACTORS.withFloor(0.4);
        assertEquals(0.4, raised.slowest());
        assertSame(raised, FACTORS.withFloor(0.4));
        assertEquals(0.5, FACTORS.withFloor(0.5).slowest());
    }
}
