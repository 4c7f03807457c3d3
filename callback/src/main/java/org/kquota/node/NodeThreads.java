package org.kquota.node;

import org.kquota.error.Errors;

import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * The plug-in's two threads for one node: one looks at the decision ten times a second and when it is woken, the other writes the
 * report once a second or when asked. Apart, so that a directory that hangs cannot keep the decision from being read.
 */
final class NodeThreads implements AutoCloseable {
    /** How often the decision file is read and the limits are looked at. */
    static final long LOOK_MS = 100;
    private static final long REPORT_MS = 1000;
    private static final long JOIN_MS = 5000;

    private final Runnable step;
    private final BooleanSupplier stepIfNews;
    private final Runnable report;
    private final Errors errors;
    private final Semaphore reportWanted = new Semaphore(0);
    private final Thread decider;
    private final Thread reporter;
    private final AtomicBoolean lookWanted = new AtomicBoolean();
    private volatile boolean closed;

    /**
     * @param step       a whole step, due every 100 ms
     * @param stepIfNews looks whether a step cannot wait until it is due; returns whether it took one
     */
    NodeThreads(int nodeId, Runnable step, BooleanSupplier stepIfNews, Runnable report, Errors errors) {
        this.step = step;
        this.stepIfNews = stepIfNews;
        this.report = report;
        this.errors = errors;
        this.decider = daemon("kquota-decision-" + nodeId, this::decideLoop);
        this.reporter = daemon("kquota-applied-" + nodeId, this::reportLoop);
    }

    void start() {
        // The first report is written in any case.
        reportWanted.drainPermits();
        decider.start();
        reporter.start();
    }

    /** Has the report written at once. */
    void reportNow() {
        reportWanted.release();
    }

    /** Has the decision looked at now: it may have changed. On any thread. */
    void lookNow() {
        lookWanted.set(true);
        LockSupport.unpark(decider);
    }

    private void decideLoop() {
        long due = System.nanoTime();
        while (!closed) {
            // This look finds whatever a wake-up before it was for.
            lookWanted.set(false);
            guarded(step, Errors.Kind.GOVERNOR);
            due += TimeUnit.MILLISECONDS.toNanos(LOOK_MS);
            if (due - System.nanoTime() > 0) {
                due = waitUntil(due);
            } else {
                // Held up, for example by a garbage collection: go on from here instead of catching up.
                due = System.nanoTime();
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
            }
        }
    }

    /** Returns when the next step is due, at that moment: a step in between puts it off, so that the one after it has its whole period. */
    private long waitUntil(long due) {
        long next = due;
        for (long left = next - System.nanoTime(); left > 0 && !closed; left = next - System.nanoTime()) {
            if (!lookWanted.getAndSet(false)) {
                LockSupport.parkNanos(left);
            } else if (steppedForNews()) {
                next = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LOOK_MS);
            }
        }
        return next;
    }

    private boolean steppedForNews() {
        try {
            return stepIfNews.getAsBoolean();
        } catch (Throwable e) {
            count(Errors.Kind.GOVERNOR, e);
            return false;
        }
    }

    private void reportLoop() {
        while (!closed) {
            guarded(report, Errors.Kind.APPLIED_FILE);
            try {
                if (reportWanted.tryAcquire(REPORT_MS, TimeUnit.MILLISECONDS)) {
                    reportWanted.drainPermits();
                }
            } catch (InterruptedException e) {
                // No code of ours interrupts; the loop's condition decides.
            }
        }
    }

    private void guarded(Runnable task, Errors.Kind kind) {
        try {
            task.run();
        } catch (Throwable e) {
            count(kind, e);
        }
    }

    /** These threads outlive any fault in a step. */
    private void count(Errors.Kind kind, Throwable fault) {
        try {
            errors.count(kind, fault);
        } catch (Throwable e) {
            // There is no memory even for this.
        }
    }

    private static Thread daemon(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        return thread;
    }

    /** Ends both threads, and waits for their current step. A report is written to its end: an interruption would leave half of one. */
    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(decider);
        reportNow();
        try {
            decider.join(JOIN_MS);
            reporter.join(JOIN_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
