package org.kquota.node;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.kquota.TestDecision.await;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.kquota.error.Errors;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;

class NodeThreadsTest {
    @Test
    @Tag("F24")
    void itsThreadsOutliveAFaultInAStepAndCountIt() throws Exception {
        AtomicInteger looks = new AtomicInteger();
        AtomicInteger reports = new AtomicInteger();
        Errors errors = new Errors();
        try (NodeThreads heartbeat = new NodeThreads(1, () -> fail(looks), () -> false, () -> fail(reports), errors)) {
            heartbeat.start();
            await("another look, although one failed", () -> looks.get() > 1);
            await("another report, although one failed", () -> reports.get() > 1);
            assertTrue(errors.tally(Errors.Kind.GOVERNOR).count() > 0);
            assertTrue(errors.tally(Errors.Kind.APPLIED_FILE).count() > 0);
        }
    }

    /** By counts of both: how often a look is due in this time depends on the machine. */
    @Test
    void aWakeUpLooksForNewsAndTakesNoStepOfItsOwn() throws Exception {
        AtomicInteger steps = new AtomicInteger();
        AtomicInteger looks = new AtomicInteger();
        try (NodeThreads threads = new NodeThreads(1, steps::incrementAndGet, () -> looks.incrementAndGet() < 0, () -> { }, new Errors())) {
            threads.start();
            await("the first step", () -> steps.get() > 0);
            int before = steps.get();
            while (looks.get() < 20 * (steps.get() - before + 1)) {
                threads.lookNow();
                Thread.sleep(1);
            }
            await("the next step, in its time", () -> steps.get() > before + 1);
        }
    }

    @Test
    void aStepForNewsPutsOffTheNextOneByAWholePeriod() throws Exception {
        List<Long> steps = new CopyOnWriteArrayList<>();
        AtomicLong forNews = new AtomicLong();
        AtomicBoolean isNews = new AtomicBoolean(true);
        BooleanSupplier stepIfNews = () -> {
            boolean taken = isNews.getAndSet(false);
            if (taken) {
                forNews.set(System.nanoTime());
            }
            return taken;
        };
        try (NodeThreads threads = new NodeThreads(1, () -> steps.add(System.nanoTime()), stepIfNews, () -> { }, new Errors())) {
            threads.start();
            await("a step", () -> !steps.isEmpty());
            await("a step for news", () -> {
                threads.lookNow();
                return forNews.get() != 0;
            });
            await("the step after it", () -> steps.stream().anyMatch(at -> at > forNews.get()));
            long after = steps.stream().filter(at -> at > forNews.get()).findFirst().orElseThrow() - forNews.get();
            assertTrue(after >= NodeThreads.LOOK_MS * 1_000_000, () -> after + " ns after it");
        }
    }

    @Test
    @Tag("F24")
    void aFaultInALookForNewsIsCountedAndTheNextStepComes() throws Exception {
        AtomicInteger steps = new AtomicInteger();
        Errors errors = new Errors();
        BooleanSupplier failing = () -> {
            throw new IllegalStateException("it fails each time");
        };
        try (NodeThreads threads = new NodeThreads(1, steps::incrementAndGet, failing, () -> { }, errors)) {
            threads.start();
            await("a counted fault", () -> {
                threads.lookNow();
                return errors.tally(Errors.Kind.GOVERNOR).count() > 0;
            });
            int before = steps.get();
            await("a step after it", () -> steps.get() > before);
        }
    }

    private static void fail(AtomicInteger times) {
        times.incrementAndGet();
        throw new IllegalStateException("it fails each time");
    }
}
