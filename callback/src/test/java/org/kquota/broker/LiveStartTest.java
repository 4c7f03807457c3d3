package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.applied.AppliedState.Mechanism;
import org.kquota.decision.State;

import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** How a real broker starts and ends with the plug-in, and what a fault inside does to it. */
class LiveStartTest {
    private static final double MB = 1e6;

    @TempDir
    private Path directory;

    @Test
    @Tag("F25")
    @Tag("F24")
    @Tag("C13")
    @Tag("C12")
    void withoutADecisionTheBrokerBootsHoldsAndLetsTheAgentPublishAndFaultsInsideChangeNothing() throws Exception {
        try (LiveBroker broker = new LiveBroker(directory, Map.of("client.quota.callback.class", "org.kquota.FaultyCallback"))) {
            assertEquals(State.PAUSE, broker.awaitApplied("the fallback", applied -> applied.mechanism() == Mechanism.GOVERNOR).state());
            try (KafkaProducer<byte[], byte[]> agent = broker.producer(LiveBroker.AGENT, "kquota-1-publish")) {
                agent.send(new ProducerRecord<>("usage", new byte[1000])).get(30, TimeUnit.SECONDS);
            }
            try (Load poisoned = new Load(broker, "alice", "poison", "poisoned", 5 * MB)) {
                Thread.sleep(10_000);
                long heldUntil = System.nanoTime();
                double held = poisoned.rate(heldUntil - 5_000_000_000L, heldUntil);
                broker.decide("OPEN", 1);
                broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN);
                Thread.sleep(14_000);
                long end = System.nanoTime();
                double free = poisoned.rate(end - 4_000_000_000L, end);
                assertTrue(held < 0.25 * free, "an error must not lift a pause: " + held + " B/s held, " + free + " B/s free");
                assertEquals(0, poisoned.failed(), "no request may fail");
            }
            assertTrue(broker.applied().errors().stream().anyMatch(error -> error.kind().equals("request") && error.count() > 0));
            assertTrue(broker.log().contains("fault of kind request, no request failed") && broker.log().contains("at org.kquota.FaultyCallback.tags"));
            broker.stop();
            assertTrue(broker.process().exitValue() == 143 || broker.process().exitValue() == 0, "a clean end: " + broker.process().exitValue());
        }
    }

    @Test
    @Tag("C4")
    @Tag("F32")
    void aMemberThatTwoGroupsClaimKeepsTheBrokerFromStartingAndIsNamed() throws Exception {
        try (LiveBroker broker = LiveBroker.refusing(directory, Map.of(
                "kquota.quota.groups", "one,two",
                "kquota.quota.group.one.principals", "User:alice", "kquota.quota.group.one.produce", "2M",
                "kquota.quota.group.two.principals", "User:alice", "kquota.quota.group.two.produce", "3M"))) {
            assertTrue(broker.process().waitFor(60, TimeUnit.SECONDS), "the broker must exit");
            assertNotEquals(0, broker.process().exitValue());
            String expected = "kquota.quota.group.two.principals: 'User:alice' is in group one, too";
            assertTrue(broker.log().contains(expected), broker.log());
        }
    }

    @Test
    @Tag("F32")
    void aBadPropertyKeepsTheBrokerFromStartingAndIsNamed() throws Exception {
        try (LiveBroker broker = LiveBroker.refusing(directory, Map.of("kquota.exempt.principals", "User:ANONYMOUS"))) {
            assertTrue(broker.process().waitFor(60, TimeUnit.SECONDS), "the broker must exit");
            assertNotEquals(0, broker.process().exitValue());
            assertTrue(broker.log().contains("kquota.exempt.principals"), broker.log());
        }
    }
}
