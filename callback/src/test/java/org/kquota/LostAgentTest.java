package org.kquota;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.kquota.TestDecision.await;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.config.KquotaConfig;
import org.kquota.quota.Tags;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** The action bounded: an agent that is gone does not stop a broker whose own disks have room. */
@Tag("F3")
class LostAgentTest {
    private static final long LEASE_MS = 1000;
    /** Over soon enough, but not before a busy machine has looked at its beginning. */
    private static final long LONGER_LEASE_MS = 4000;
    private static final KafkaPrincipal ALICE = new KafkaPrincipal("User", "alice");

    @TempDir
    private Path directory;
    private TestDecision decision;
    private Map<String, Object> properties;
    private final KquotaCallback callback = new KquotaCallback();

    @BeforeEach
    void enforcing() throws IOException {
        decision = new TestDecision(directory);
        properties = TestProperties.broker(directory);
        properties.put(KquotaConfig.MODE, "enforce");
        properties.put(KquotaConfig.DECISION_LOST_ACTION, "bounded");
    }

    @AfterEach
    void close() {
        callback.close();
    }

    private boolean holds() {
        return callback.quotaMetricTags(ClientQuotaType.PRODUCE, ALICE, "app").equals(Tags.PAUSED);
    }

    private boolean reported(String text) {
        try {
            return Files.readString(directory.resolve("applied/applied.json")).contains(text);
        } catch (IOException e) {
            return false;
        }
    }

    @Test
    void theLastDecisionHoldsOnWithoutAMomentOfPauseWhileItsDisksHaveRoom() throws Exception {
        decision.writeBeside(directory, 1, 0, "OPEN", 1, LEASE_MS);
        callback.configure(properties);
        long end = System.nanoTime() + 4_000_000_000L;
        while (System.nanoTime() < end) {
            assertFalse(holds());
            Thread.sleep(1);
        }
        await("what it keeps is reported", () -> reported("\"kept\" : \"the decision's lease ran out\""));
        decision.write("PAUSE", 0);
        await("the new agent's PAUSE", this::holds);
    }

    @Test
    void aDiskBeyondItsHardLimitPausesTheBroker() throws Exception {
        decision.writeBeside(directory, Long.MAX_VALUE, Long.MAX_VALUE - 1, "OPEN", 1, LONGER_LEASE_MS);
        callback.configure(properties);
        assertFalse(holds(), "the agent has seen more room there");
        await("PAUSE", this::holds);
    }

    @Test
    void withoutALastDecisionAndWithOneThatNamesNoDisksItIsAPause() throws Exception {
        callback.configure(properties);
        assertTrue(holds());
        decision.write("OPEN", 1, "enforce", LONGER_LEASE_MS);
        await("OPEN", () -> !holds());
        await("PAUSE", this::holds);
    }

    @Test
    void aFileThatIsRefusedLeavesTheLastDecisionInForce() throws Exception {
        decision.writeBeside(directory, 1, 0, "OPEN", 1, 60_000);
        callback.configure(properties);
        assertFalse(holds());
        decision.writeBeside(directory, 1, 0, "OPEN", 1, LEASE_MS);
        await("it is read", () -> reported("\"sequence\" : 2"));
        Files.writeString(decision.file(), "garbage");
        Thread.sleep(2000);
        assertFalse(holds());
        await("what it keeps is reported", () -> reported("\"kept\" : \"decision is not valid JSON"));
        assertFalse(holds());
    }
}
