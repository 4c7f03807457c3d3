package org.kquota.quota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.MetricName;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;

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
        assertEquals(List.of(2, 2, 2, 2), List.of(tags.size(), tags.values().size(), tags.keySet().size(), tags.entrySet().size()));
    }

    @Test
    void othersDiffer() {
        for (Map<String, String> other : List.of(Tags.of("alice", ""), Tags.of("", "app"), Tags.of("app", "alice"), Map.of("user", "alice"),
                Map.of("user", "alice", "client", "app"))) {
            assertNotEquals(other, tags);
            assertNotEquals(tags, other);
        }
        assertNull(tags.get("client"));
        assertFalse(tags.containsKey("client"));
        assertTrue(tags.containsKey("user") && tags.containsKey("client-id"));
        assertEquals(Map.of("user", "", "client-id", ""), Tags.of("", ""));
    }

    @Test
    void tagsAreOfAnExemptPrincipalByTheirUser() {
        assertTrue(Tags.isExempt(Tags.exempt("admin")));
        assertTrue(Tags.isExempt(Tags.agent("admin")) && Tags.isAgent(Tags.agent("admin")));
        assertFalse(Tags.isAgent(Tags.exempt("admin")) || Tags.isAgent(tags) || Tags.isAgent(Map.of()));
        assertFalse(Tags.isExempt(tags));
        assertFalse(Tags.isExempt(Map.of("client-id", "<exempt>admin")));
    }

    @Test
    void theirValuesEnd() {
        Iterator<String> values = tags.values().iterator();
        values.next();
        assertTrue(values.hasNext());
        values.next();
        assertFalse(values.hasNext());
        assertThrows(NoSuchElementException.class, values::next);
    }

    @Test
    void nobodyCanChangeThem() {
        assertThrows(UnsupportedOperationException.class, () -> tags.put("user", "bob"));
        assertThrows(UnsupportedOperationException.class, () -> tags.remove("user"));
        assertThrows(UnsupportedOperationException.class, () -> tags.values().clear());
        assertThrows(UnsupportedOperationException.class, () -> tags.entrySet().iterator().next().setValue("bob"));
    }
}
