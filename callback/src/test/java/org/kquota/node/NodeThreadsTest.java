package org.kquota.node;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.kquota.TestDecision.await;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.kquota.error.Errors;

import java.util.concurrent.atomic.AtomicInteger;

class NodeThreadsTest {
    @Test
    @Tag("F24")
    void itsThreadsOutliveAFaultInAStepAndCountIt() throws Exception {
        AtomicInteger looks = new AtomicInteger();
        AtomicInteger reports = new AtomicInteger();
        Errors errors = new Errors();
        try (NodeThreads heartbeat = new NodeThreads(1, () -> fail(looks), () -> fail(reports), errors)) {
            heartbeat.start();
            await("another look, although one failed", () -> looks.get() > 1);
            await("another report, although one failed", () -> reports.get() > 1);
            assertTrue(errors.tally(Errors.Kind.GOVERNOR).count() > 0);
            assertTrue(errors.tally(Errors.Kind.APPLIED_FILE).count() > 0);
        }
    }

    private static void fail(AtomicInteger times) {
        times.incrementAndGet();
        throw new IllegalStateException("it fails each time");
    }
}
