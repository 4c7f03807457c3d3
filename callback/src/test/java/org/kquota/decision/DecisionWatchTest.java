package org.kquota.decision;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

class DecisionWatchTest {
    private static final long NANOS = 5_000_000_000L;

    @TempDir
    private Path temporary;
    private Path decision;
    private Path uptime;
    private Path bootId;
    private DecisionWatch watch;

    @BeforeEach
    void set() throws IOException {
        Path directory = Files.createDirectory(temporary.resolve("run"));
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
        decision = directory.resolve("decision.json");
        uptime = Files.writeString(temporary.resolve("uptime"), "100.25 7.00\n");
        bootId = Files.writeString(temporary.resolve("boot_id"), "this-boot\n");
        watch = new DecisionWatch(new DecisionFile(decision), new BootClock(uptime, bootId), () -> NANOS, 1);
        write("enforce", 1, "c", "this-boot", 110_250);
    }

    private void write(String mode, int brokerId, String clusterId, String boot, long validUntilUptimeMs) throws IOException {
        Files.writeString(decision, "{\"schema_version\": 1, \"cluster_id\": \"" + clusterId + "\", \"broker_id\": " + brokerId
            + ", \"sequence\": 42, \"mode\": \"" + mode + "\", \"state\": \"PAUSE\", \"factor\": 0, \"boot_id\": \"" + boot
            + "\", \"valid_until_uptime_ms\": " + validUntilUptimeMs + "}");
        Files.setPosixFilePermissions(decision, PosixFilePermissions.fromString("rw-r--r--"));
    }

    private void assertLost(String because) {
        Verdict verdict = watch.look("c");
        assertTrue(verdict.isLost());
        assertTrue(verdict.lost().contains(because), verdict.lost());
    }

    @Test
    void aRunningLeaseIsADeadlineOnTheMonotonicClock() {
        Verdict verdict = watch.look("c");
        assertFalse(verdict.isLost());
        assertEquals(State.PAUSE, verdict.decision().state());
        assertEquals(NANOS + 10_000_000_000L, verdict.deadlineNanos());
    }

    @Test
    void aBrokerThatDoesNotKnowItsClusterYetBelievesTheFile() {
        assertEquals(42, watch.look(null).decision().sequence());
    }

    @Test
    @Tag("F3")
    void aLeaseThatRanOutIsLost() throws IOException {
        Files.writeString(uptime, "110.24 7.00\n");
        assertEquals(NANOS + 10_000_000L, watch.look("c").deadlineNanos());
        Files.writeString(uptime, "110.25 7.00\n");
        assertLost("ran out");
    }

    @Test
    void anAbsurdlyLongLeaseDoesNotOverflow() throws IOException {
        write("enforce", 1, "c", "this-boot", Long.MAX_VALUE);
        assertTrue(watch.look("c").deadlineNanos() - NANOS > 0);
    }

    @Test
    void aDecisionOfAnotherBootIsLost() throws IOException {
        write("enforce", 1, "c", "other-boot", 110_250);
        assertLost("before this machine booted");
    }

    @Test
    void aDecisionForAnotherBrokerOrClusterIsLost() throws IOException {
        write("enforce", 2, "c", "this-boot", 110_250);
        assertLost("for broker 2");
        write("enforce", 1, "d", "this-boot", 110_250);
        assertLost("for cluster d");
    }

    @Test
    void clocksThatCannotBeReadLoseTheDecision() throws IOException {
        Files.writeString(uptime, "soon\n");
        assertLost("cannot be judged");
        Files.writeString(uptime, "100.25 7.00\n");
        Files.delete(bootId);
        assertLost("cannot be judged");
    }

    @Test
    void theLastModeIsThatOfTheLastValidDecision() throws IOException {
        assertNull(watch.lastMode());
        write("observe", 1, "c", "other-boot", 110_250);
        watch.look("c");
        assertNull(watch.lastMode());
        write("observe", 1, "c", "this-boot", 110_250);
        watch.look("c");
        assertEquals(Mode.OBSERVE, watch.lastMode());
        Files.delete(decision);
        watch.look("c");
        assertEquals(Mode.OBSERVE, watch.lastMode());
    }

    private void writeTopics(int sequence, double factor) throws IOException {
        Files.writeString(decision, "{\"schema_version\": 1, \"cluster_id\": \"c\", \"broker_id\": 1, \"sequence\": " + sequence
            + ", \"mode\": \"enforce\", \"state\": \"PAUSE\", \"factor\": 0, \"scope\": \"topics\", \"topics\": {\"orders\": 0, \"clicks\": " + factor
            + "}, \"boot_id\": \"this-boot\", \"valid_until_uptime_ms\": 110250}");
    }

    @Test
    void aFileThatIsTheSameIsNotParsedAgain() throws IOException {
        Decision first = watch.look("c").decision();
        assertSame(first, watch.look("c").decision());
        write("enforce", 1, "c", "this-boot", 110_300);
        assertNotSame(first, watch.look("c").decision());
        Files.writeString(decision, "no decision");
        assertLost("not valid JSON");
        assertLost("not valid JSON");
        write("enforce", 1, "c", "this-boot", 110_250);
        assertFalse(watch.look("c").isLost());
    }

    @Test
    void equalFactorsOfTopicsStayTheSameObject() throws IOException {
        writeTopics(1, 0.5);
        TopicFactors first = watch.look("c").decision().topics();
        writeTopics(2, 0.5);
        Decision second = watch.look("c").decision();
        assertEquals(2, second.sequence());
        assertSame(first, second.topics());
        writeTopics(3, 0.4);
        assertEquals(0.4, watch.look("c").decision().topics().of("clicks"));
    }

    @Test
    void thisMachinesClockRuns() throws Exception {
        BootClock clock = new BootClock();
        long before = clock.uptimeMs();
        Thread.sleep(30);
        assertTrue(clock.uptimeMs() > before);
        assertEquals(36, clock.bootId().length());
    }
}
