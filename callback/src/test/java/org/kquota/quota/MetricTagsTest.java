package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.apache.kafka.common.MetricName;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

class MetricTagsTest {
    private final Map<String, String> tags = Tags.of("alice", "app");

    /** Kafka looks for metrics by maps of its own making. */
    @Test
    void theyAreTheMapThatKafkaMakes() {
        Map<String, String> kafkas = new LinkedHashMap<>();
        kafkas.put("user", "alice");
        kafkas.put("client-id", "app");
        for (Map<String, String> other : List.of(kafkas, Map.of("client-id", "app", "user", "alice"), Tags.of("alice", "app"))) {
            assertEquals(other, tags);
            assertEquals(tags, other);
            assertEquals(other.hashCode(), tags.hashCode());
        }
        assertEquals(new MetricName("byte-rate", "Produce", "", kafkas), new MetricName("byte-rate", "Produce", "", tags));
        assertEquals(kafkas.toString(), tags.toString());
    }

    @Test
    void theirOrderIsFixedBecauseSensorsAreNamedByIt() {
        assertEquals(List.of("alice", "app"), new ArrayList<>(tags.values()));
        assertEquals(List.of("user", "client-id"), new ArrayList<>(tags.keySet()));
        assertEquals(List.of(Map.entry("user", "alice"), Map.entry("client-id", "app")), new ArrayList<>(tags.entrySet()));
        assertEquals(2, tags.size());
    }

    @Test
    void othersDiffer() {
        for (Map<String, String> other : List.of(Tags.of("alice", ""), Tags.of("", "app"), Tags.of("app", "alice"), Map.of("user", "alice"),
                Map.of("user", "alice", "client", "app"))) {
            assertNotEquals(other, tags);
            assertNotEquals(tags, other);
        }
        assertNull(tags.get("client"));
        assertEquals(Map.of("user", "", "client-id", ""), Tags.of("", ""));
    }

    @Test
    void nobodyCanChangeThem() {
        assertThrows(UnsupportedOperationException.class, () -> tags.put("user", "bob"));
        assertThrows(UnsupportedOperationException.class, () -> tags.remove("user"));
        assertThrows(UnsupportedOperationException.class, () -> tags.values().clear());
        assertThrows(UnsupportedOperationException.class, () -> tags.entrySet().iterator().next().setValue("bob"));
    }
}
