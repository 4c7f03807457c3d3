package org.kquota.decision;

import java.io.IOException;
import java.nio.file.ClosedWatchServiceException;
import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchEvent;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.util.concurrent.TimeUnit;

/**
 * Notices at once that the decision file was replaced, with a thread of its own. It promises nothing: where the directory is missing, the
 * file system has no events or the machine no watches left, it notices nothing, and its user polls in any case. So it reports no fault.
 */
public final class DecisionFileEvents implements AutoCloseable {
    /** A directory that is missing, or that another one has taken the place of, is found again within this time. */
    static final long REGISTER_MS = 1000;
    private static final long JOIN_MS = 1000;

    private final Path file;
    private final Runnable replaced;
    private final Thread thread;
    private volatile boolean closed;

    /** @param replaced called in the watch's thread for each replacement, and where some may have been missed */
    public DecisionFileEvents(Path file, String threadName, Runnable replaced) {
        this.file = file.toAbsolutePath();
        this.replaced = replaced;
        this.thread = new Thread(this::run, threadName);
        thread.setDaemon(true);
    }

    public void start() {
        thread.start();
    }

    private void run() {
        while (!closed) {
            // The service is closed by this thread alone: where the directory hangs, so may that.
            try (WatchService service = FileSystems.getDefault().newWatchService()) {
                follow(service);
            } catch (IOException | RuntimeException e) {
                // No watches left, or no support: the next turn tries again.
            } catch (InterruptedException e) {
                return;
            }
            try {
                TimeUnit.MILLISECONDS.sleep(REGISTER_MS);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private void follow(WatchService service) throws InterruptedException {
        WatchKey current = null;
        long registerAt = System.nanoTime();
        while (!closed) {
            long left = registerAt - System.nanoTime();
            if (left <= 0) {
                // The same directory gives the same key; another one in its place, a new one.
                WatchKey next = register(service);
                if (current != null && !current.equals(next)) {
                    current.cancel();
                }
                current = next;
                left = TimeUnit.MILLISECONDS.toNanos(REGISTER_MS);
                registerAt = System.nanoTime() + left;
            }
            WatchKey key = service.poll(left, TimeUnit.NANOSECONDS);
            if (key != null) {
                boolean isOurs = key.pollEvents().stream().anyMatch(this::concerns);
                key.reset();
                if (isOurs) {
                    replaced.run();
                }
            }
        }
    }

    private WatchKey register(WatchService service) {
        try {
            // A rename into the directory is a creation, also where it replaces a file.
            return file.getParent().register(service, StandardWatchEventKinds.ENTRY_CREATE);
        } catch (ClosedWatchServiceException e) {
            throw e;
        } catch (IOException | RuntimeException e) {
            return null;
        }
    }

    private boolean concerns(WatchEvent<?> event) {
        return event.kind() == StandardWatchEventKinds.OVERFLOW || file.getFileName().equals(event.context());
    }

    /** Ends the thread, if it does not hang in the file system. */
    @Override
    public void close() {
        closed = true;
        thread.interrupt();
        try {
            thread.join(JOIN_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
