package org.kquota.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.kquota.TestDecision.await;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.decision.OwnLogDir;
import org.kquota.error.Errors;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

class OwnDisksTest {
    private static final OwnLogDir ONE = new OwnLogDir("/one", 100, 50);
    private static final OwnLogDir OTHER = new OwnLogDir("/other", 100, 50);
    private static final List<OwnLogDir> BOTH = List.of(ONE, OTHER);

    private final Errors errors = new Errors();
    private final AtomicLong nanos = new AtomicLong(1);
    private final Map<String, Long> available = new ConcurrentHashMap<>(Map.of("/one", 200L, "/other", 75L));
    private OwnDisks disks = new OwnDisks(1, available::get, errors, nanos::get);

    @AfterEach
    void close() {
        disks.close();
    }

    private double headroom() {
        return disks.headroom(BOTH, nanos.get());
    }

    @Test
    void theFullestLogDirCounts() throws Exception {
        disks.watch(BOTH);
        await("a look", () -> headroom() == 0.5);
        available.put("/one", 50L);
        disks.look();
        assertEquals(0, headroom());
    }

    @Test
    void aLookCountsForThreeSecondsAndForTheLogDirsThatItSaw() throws Exception {
        assertEquals(Double.NaN, headroom(), "before the first look");
        disks.watch(BOTH);
        await("a look", () -> headroom() == 0.5);
        disks.close();
        assertEquals(Double.NaN, disks.headroom(List.of(ONE), nanos.get()));
        assertEquals(Double.NaN, disks.headroom(null, nanos.get()));
        nanos.addAndGet(3_000_000_000L);
        assertEquals(0.5, headroom());
        nanos.addAndGet(1);
        assertEquals(Double.NaN, headroom());
    }

    @Test
    void itLooksOnlyWhileItIsAsked() throws Exception {
        disks.watch(BOTH);
        await("a look", () -> headroom() == 0.5);
        disks.watch(null);
        nanos.addAndGet(4_000_000_000L);
        Thread.sleep(1200);
        assertEquals(Double.NaN, headroom());
        disks.watch(BOTH);
        await("another look", () -> headroom() == 0.5);
    }

    @Test
    void aDiskThatHangsIsNotKnownAndAFaultIsCounted() throws Exception {
        Semaphore answers = new Semaphore(0);
        disks = new OwnDisks(1, path -> {
            answers.acquireUninterruptibly();
            throw new IllegalStateException("the disk is gone");
        }, errors, nanos::get);
        disks.watch(BOTH);
        Thread.sleep(200);
        assertEquals(Double.NaN, headroom());
        answers.release(100);
        await("the fault", () -> errors.tally(Errors.Kind.LOG_DIRS).count() > 0);
    }

    @Test
    void aDirectoryThatIsGoneHasNoRoom(@TempDir Path directory) {
        OwnDisks real = disks = new OwnDisks(1, errors, nanos::get);
        List<OwnLogDir> there = List.of(new OwnLogDir(directory.toString(), 1, 0));
        real.watch(there);
        real.look();
        assertTrue(real.headroom(there, nanos.get()) == 1, "a temporary directory has a byte left");
        List<OwnLogDir> gone = List.of(new OwnLogDir(directory.resolve("gone").toString(), 1, 0));
        real.watch(gone);
        real.look();
        assertEquals(0, real.headroom(gone, nanos.get()));
    }
}
