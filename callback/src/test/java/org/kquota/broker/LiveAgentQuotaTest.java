package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The quota of agents in a real broker, against clients with a stolen key of one. */
class LiveAgentQuotaTest {
    private static final double QUOTA = 200_000;
    private static final int CONNECTIONS = 3;
    private static final long SECOND = 1_000_000_000L;

    @TempDir
    private Path directory;

    private static long landed(Admin admin, String topic) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        return admin.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get().offset() * Reconnecting.RECORD_BYTES;
    }

    /** Kafka never delays a client that makes a connection for each few requests, so only the fence bounds it. Another exempt principal does the same without a bound. */
    @Test
    @Tag("A17")
    void aStolenKeyWritesNoMoreThanItsQuotaOnHoweverManyConnectionsAndNoOtherAgentIsDelayed() throws Exception {
        Map<String, String> settings = new TreeMap<>(LiveFenceTest.FENCED);
        settings.putAll(Map.of("kquota.exempt.principals", "User:admin;User:alice;User:bob;User:carol", "kquota.agent.principals", "User:alice;User:carol",
            "kquota.agent.produce.quota", "200K"));
        List<Reconnecting> thieves = new ArrayList<>();
        try (LiveBroker broker = new LiveBroker(directory, settings); Admin admin = broker.admin()) {
            broker.decide("OPEN", 1, "enforce", 3_600_000);
            broker.awaitApplied("OPEN", applied -> applied.lost() == null);
            broker.lead("bounded");
            broker.lead("free");
            try (Load honest = new Load(broker, "carol", "kquota-1-publish", "usage", QUOTA / 4)) {
                for (int i = 0; i < CONNECTIONS; i++) {
                    thieves.add(new Reconnecting(broker, "alice", "bounded"));
                    thieves.add(new Reconnecting(broker, "bob", "free"));
                }
                LiveBroker.await("the thief is over its quota", () -> isLogged(broker, "<agent>alice has produced"));
                long from = System.nanoTime();
                long bounded = landed(admin, "bounded");
                long free = landed(admin, "free");
                Thread.sleep(20_000);
                long to = System.nanoTime();
                bounded = landed(admin, "bounded") - bounded;
                free = landed(admin, "free") - free;
                double seconds = (to - from) / (double) SECOND;
                System.out.printf("in %.1f s: %d bytes by the stolen key, of %.0f by its quota; %d without%n", seconds, bounded, QUOTA * seconds, free);
                assertTrue(free > 5 * QUOTA * seconds, "it could write more: " + free);
                // Refusals pay for what comes between two looks at the rates. By Kafka's delays alone it was more than five times the quota.
                assertTrue(bounded < 2 * QUOTA * seconds, bounded + " bytes in " + seconds + " s, without a quota " + free);
                assertEquals(0, honest.metric("produce-throttle-time-max"), honest.story());
                assertEquals(0, honest.metric("record-retry-total"), honest.story());
                assertEquals(0, honest.failed());
                assertTrue(honest.rate(from, to) > 0.8 * QUOTA / 4, honest.story());
            }
        } finally {
            thieves.forEach(Reconnecting::close);
        }
    }

    private static boolean isLogged(LiveBroker broker, String text) {
        try {
            return broker.log().contains(text);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
