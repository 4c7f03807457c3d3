package org.kquota.decision;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.kquota.TestDecision.await;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

class DecisionFileEventsTest {
    private static final String THREAD = "the-events";

    @TempDir
    private Path temporary;
    private Path file;
    private final AtomicInteger seen = new AtomicInteger();
    private int written;

    @BeforeEach
    void set() throws IOException {
        file = Files.createDirectory(temporary.resolve("run")).resolve("decision.json");
    }

    private DecisionFileEvents events() {
        return new DecisionFileEvents(file, THREAD, seen::incrementAndGet);
    }

    private void replace() throws IOException {
        Path next = Files.writeString(file.resolveSibling("decision.tmp"), "version " + ++written);
        Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
    }

    /** It is registered some time after its start. */
    private void awaitNotice() throws Exception {
        int before = seen.get();
        await("a replacement that is noticed", () -> {
            try {
                replace();
            } catch (IOException e) {
                throw new AssertionError(e);
            }
            return seen.get() > before;
        });
    }

    private static List<Thread> threads() {
        return Thread.getAllStackTraces().keySet().stream().filter(Thread::isAlive).filter(thread -> thread.getName().equals(THREAD)).toList();
    }

    @Test
    void eachReplacementIsNoticed() throws Exception {
        try (DecisionFileEvents events = events()) {
            events.start();
            for (int i = 0; i < 3; i++) {
                awaitNotice();
            }
        }
    }

    @Test
    void otherFilesOfTheDirectoryDoNotConcernIt() throws Exception {
        try (DecisionFileEvents events = events()) {
            events.start();
            awaitNotice();
            int before = seen.get();
            int others = 50;
            for (int i = 0; i < others; i++) {
                Files.writeString(file.resolveSibling("other-" + i), "");
                Thread.sleep(2);
            }
            awaitNotice();
            // Ours, and the last ones of before.
            assertTrue(4 * (seen.get() - before) < others, () -> seen.get() - before + " of " + others);
        }
    }

    @Test
    void aDirectoryThatComesLaterIsWatched() throws Exception {
        Files.delete(file.getParent());
        try (DecisionFileEvents events = events()) {
            events.start();
            Thread.sleep(50);
            Files.createDirectory(file.getParent());
            awaitNotice();
        }
    }

    @Test
    void aDirectoryInThePlaceOfTheFormerOneIsWatched() throws Exception {
        try (DecisionFileEvents events = events()) {
            events.start();
            awaitNotice();
            Files.move(file.getParent(), temporary.resolve("former"));
            Files.createDirectory(file.getParent());
            awaitNotice();
            Files.delete(file);
            Files.delete(file.getParent());
            Files.createDirectory(file.getParent());
            awaitNotice();
        }
    }

    @Test
    void closingEndsItsThread() throws Exception {
        DecisionFileEvents events = events();
        events.start();
        awaitNotice();
        assertEquals(1, threads().size());
        assertTrue(threads().get(0).isDaemon(), "a broker that stops does not wait for it");
        events.close();
        assertEquals(List.of(), threads());
        int before = seen.get();
        replace();
        assertEquals(before, seen.get());
    }

    @Test
    void oneThatWasNeverStartedCloses() {
        events().close();
        assertTrue(threads().isEmpty());
    }

    @Test
    void itOutlivesAFaultOfWhoeverItNotifies() throws Exception {
        CountDownLatch failed = new CountDownLatch(1);
        try (DecisionFileEvents events = new DecisionFileEvents(file, THREAD, () -> {
            failed.countDown();
            if (seen.incrementAndGet() == 1) {
                throw new IllegalStateException("it fails once");
            }
        })) {
            events.start();
            awaitNotice();
            failed.await();
            awaitNotice();
        }
    }
}
