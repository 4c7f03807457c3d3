package org.kquota.applied;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.Test;
import org.kquota.quota.TagSet;
import org.kquota.quota.Tags;

import java.util.List;

class NotedTopicsTest {
    private final NotedTopics noted = new NotedTopics();
    private final TagSet client = new TagSet(Tags.of("alice", "app"));

    @Test
    void topicsAreReportedOnceTheyHaveBeenNotedForAMinute() {
        client.noteTopic("orders", 100);
        noted.begin(true, 100);
        assertNull(noted.of(client), "what was written before is not known");
        noted.begin(true, 159);
        assertNull(noted.of(client));
        noted.begin(true, 160);
        assertEquals(List.of("orders"), noted.of(client));
        noted.begin(false, 161);
        client.noteTopic("orders", 161);
        noted.begin(true, 162);
        assertNull(noted.of(client), "the minute begins again");
    }

    @Test
    void nothingIsReportedOfAClientThatWroteToNoneAndOfOneThatIsUnknown() {
        noted.begin(true, 0);
        noted.begin(true, 60);
        assertNull(noted.of(client));
        assertNull(noted.of(null));
    }

    @Test
    void theNamesOfAReportAreBounded() {
        TagSet other = new TagSet(Tags.of("bob", "app"));
        noted.begin(true, 0);
        noted.begin(true, 60);
        for (int i = 0; i < 16; i++) {
            client.noteTopic("t%02d".formatted(i) + "x".repeat(4_093 - i), 60);
        }
        other.noteTopic("a".repeat(73), 60);
        assertEquals(65_416, noted.of(client).stream().mapToInt(String::length).sum());
        assertEquals(1, noted.of(other) == null ? 0 : 1, "73 more have room");
        noted.begin(true, 61);
        noted.of(client);
        other.noteTopic("b".repeat(48), 61);
        assertNull(noted.of(other), "121 more have none");
        noted.begin(true, 62);
        assertEquals(2, noted.of(other).size(), "they have in a report of their own");
    }
}
