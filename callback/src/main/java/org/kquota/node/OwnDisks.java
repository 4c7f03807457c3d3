package org.kquota.node;

import org.kquota.decision.OwnLogDir;
import org.kquota.error.Errors;

import java.io.File;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import java.util.function.ToLongFunction;

/** Looks at the space of this broker's own log dirs while a decision is lost or about to be, on a thread of its own: a disk may hang. */
final class OwnDisks implements AutoCloseable {
    private static final long LOOK_NANOS = 500_000_000L;
    /** A disk that has not answered for this long is one of which nothing is known. */
    private static final long FRESH_NANOS = 3_000_000_000L;

    private static final long JOIN_MS = 1000;

    private record Look(List<OwnLogDir> logDirs, double headroom, long atNanos) {
    }

    private final ToLongFunction<String> availableBytes;
    private final LongSupplier nanoTime;
    private final Errors errors;
    private final Thread thread;
    private volatile List<OwnLogDir> wanted;
    private volatile Look last;
    private volatile boolean closed;

    OwnDisks(int nodeId, Errors errors, LongSupplier nanoTime) {
        this(nodeId, path -> new File(path).getUsableSpace(), errors, nanoTime);
    }

    /** @param availableBytes of a directory, to this process; 0 where that is not known */
    OwnDisks(int nodeId, ToLongFunction<String> availableBytes, Errors errors, LongSupplier nanoTime) {
        this.availableBytes = availableBytes;
        this.nanoTime = nanoTime;
        this.errors = errors;
        this.thread = new Thread(this::run, "kquota-disks-" + nodeId);
        thread.setDaemon(true);
    }

    /** Looks at these from now on; null: at none. The thread begins with the first. For the thread that decides. */
    void watch(List<OwnLogDir> logDirs) {
        boolean begins = wanted == null && logDirs != null;
        wanted = logDirs;
        if (begins && thread.getState() == Thread.State.NEW) {
            thread.start();
        } else if (begins) {
            LockSupport.unpark(thread);
        }
    }

    /** The least headroom of these log dirs, in [0, 1]; not a number where there is no fresh look at them. */
    double headroom(List<OwnLogDir> logDirs, long nanos) {
        Look look = last;
        boolean fresh = look != null && logDirs != null && look.logDirs.equals(logDirs) && nanos - look.atNanos <= FRESH_NANOS;
        return fresh ? look.headroom : Double.NaN;
    }

    private void run() {
        while (!closed) {
            try {
                look();
            } catch (RuntimeException | Error e) {
                errors.count(Errors.Kind.LOG_DIRS, e);
            }
            if (wanted == null) {
                LockSupport.park(this);
            } else {
                LockSupport.parkNanos(this, LOOK_NANOS);
            }
        }
    }

    /** One look; its time is that of its beginning. */
    void look() {
        List<OwnLogDir> logDirs = wanted;
        if (logDirs == null) {
            return;
        }
        long nanos = nanoTime.getAsLong();
        double least = 1;
        for (OwnLogDir logDir : logDirs) {
            least = Math.min(least, logDir.headroom(availableBytes.applyAsLong(logDir.path())));
        }
        last = new Look(logDirs, least, nanos);
    }

    /** Ends the thread; a disk that hangs delays the end by a second at most. */
    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
        try {
            thread.join(JOIN_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
