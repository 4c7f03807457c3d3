package org.kquota.metering;

import static org.apache.kafka.server.quota.ClientQuotaType.FETCH;
import static org.apache.kafka.server.quota.ClientQuotaType.PRODUCE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.Map;

class LastLimitsTest {
    private static final int MAX = 100;

    private final LastLimits limits = new LastLimits(MAX);

    private static Map<String, String> tags(int client) {
        return Map.of("user", "alice", "client-id", "app-" + client);
    }

    @Test
    void theLastLimitOfEachTypeIsFound() {
        assertNull(limits.find(PRODUCE, tags(1)));
        limits.remember(PRODUCE, tags(1), 5.0);
        limits.remember(PRODUCE, tags(1), 7.0);
        limits.remember(FETCH, tags(1), 9.0);
        assertEquals(7, limits.find(PRODUCE, tags(1)));
        assertEquals(9, limits.find(FETCH, tags(1)));
        limits.remember(PRODUCE, tags(1), null);
        assertNull(limits.find(PRODUCE, tags(1)), "it has none any more");
        limits.remember(PRODUCE, tags(2), null);
        assertEquals(2, limits.size(), "there is nothing to remember of a client that never had one");
    }

    @Test
    void clientsOfLongAgoMakeRoomAndThoseThatStayAreRemembered() {
        for (int client = 1; client <= 10_000; client++) {
            limits.remember(PRODUCE, tags(client), (double) client);
            limits.remember(PRODUCE, tags(0), -1.0 * client);
            assertEquals(-1.0 * client, limits.find(PRODUCE, tags(0)));
            assertEquals(client, limits.find(PRODUCE, tags(client)), "a client that has just come, however many there were before");
            assertTrue(limits.size() <= 2 * MAX, "at most twice as many as that: " + limits.size());
        }
        assertNull(limits.find(PRODUCE, tags(1)));
    }

    @Test
    void whoHasNoLimitAnyMoreIsNotTakenForWhatItWas() {
        limits.remember(PRODUCE, tags(0), 5.0);
        for (int client = 1; client <= MAX; client++) {
            limits.remember(PRODUCE, tags(client), 1.0);
        }
        limits.remember(PRODUCE, tags(0), null);
        assertNull(limits.find(PRODUCE, tags(0)));
    }
}
