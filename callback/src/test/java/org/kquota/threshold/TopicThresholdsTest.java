package org.kquota.threshold;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** The worked figures of Broker-side quota V1: a total of 100, A = 40 and B = 20. */
class TopicThresholdsTest {
    private static final TopicThresholds FIGURES = new TopicThresholds(100, Map.of("A", 40L, "B", 20L));

    private static Map<String, Double> onBroker(TopicThresholds thresholds, String... topics) {
        double share = thresholds.share(List.of(topics));
        Map<String, Double> each = new HashMap<>();
        for (String topic : topics) {
            each.put(topic, thresholds.of(topic, share));
        }
        return each;
    }

    @Test
    @Tag("D1")
    @Tag("D3")
    void theOthersShareTheRestEvenly() {
        assertEquals(Map.of("A", 40.0, "B", 20.0, "c", 10.0, "d", 10.0, "e", 10.0, "f", 10.0), onBroker(FIGURES, "A", "B", "c", "d", "e", "f"));
    }

    @Test
    @Tag("D3")
    @Tag("D4")
    void aNewTopicMakesTheSharesSmallerAndOneThatGoesMakesThemLarger() {
        assertEquals(8.0, onBroker(FIGURES, "A", "B", "c", "d", "e", "f", "g").get("c"));
        assertEquals(20.0, onBroker(FIGURES, "A", "B", "c", "d").get("c"));
    }

    @Test
    @Tag("D3")
    void whatIsWhollyTakenLeavesNothing() {
        assertEquals(0.0, onBroker(new TopicThresholds(100, Map.of("A", 80L, "B", 20L)), "A", "B", "c", "d").get("c"));
    }

    @Test
    @Tag("D2")
    @Tag("D3")
    void whatAddsUpToMoreIsRejected() {
        String message = assertThrows(IllegalArgumentException.class, () -> new TopicThresholds(100, Map.of("A", 81L, "B", 20L))).getMessage();
        assertTrue(message.contains("101") && message.contains("100"), message);
        assertThrows(IllegalArgumentException.class, () -> new TopicThresholds(Long.MAX_VALUE, Map.of("A", Long.MAX_VALUE, "B", 1L)));
        assertThrows(IllegalArgumentException.class, () -> new TopicThresholds(100, Map.of("A", -1L)));
    }

    @Test
    @Tag("D3")
    void withoutOthersNothingIsDivided() {
        assertEquals(0.0, FIGURES.share(List.of("A", "B")));
        assertEquals(Map.of("A", 40.0), onBroker(FIGURES, "A"));
    }

    @Test
    @Tag("D2")
    @Tag("D3")
    void theThresholdsOfAllTopicsHereNeverAddUpToMoreThanTheTotal() {
        for (int seed = 0; seed < 500; seed++) {
            Random random = new Random(seed);
            Map<String, Long> explicit = new HashMap<>();
            List<String> here = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                if (random.nextBoolean()) {
                    explicit.put("t" + i, (long) random.nextInt(1000));
                }
                if (random.nextBoolean()) {
                    here.add("t" + i);
                }
            }
            long sum = explicit.values().stream().mapToLong(Long::longValue).sum();
            TopicThresholds thresholds = new TopicThresholds(sum + random.nextInt(1000), explicit);
            double share = thresholds.share(here);
            double together = here.stream().mapToDouble(topic -> thresholds.of(topic, share)).sum();
            assertTrue(together <= thresholds.total() + 1e-6, "seed " + seed);
            long absent = explicit.entrySet().stream().filter(entry -> !here.contains(entry.getKey())).mapToLong(Map.Entry::getValue).sum();
            if (!explicit.keySet().containsAll(here)) {
                assertEquals(thresholds.total() - absent, together, 1e-6, "nothing is lost, seed " + seed);
            }
        }
    }
}
