package org.kquota.bench;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.locks.LockSupport;

/**
 * The cost of the plug-in's threads with {@link ManyQuotas} in use: the one that keeps the accounts of clients and writes the report, and
 * the one that judges topics and decisions. Prints one JSON object, in milliseconds of processor time per second.
 *
 * <pre>ReportCost DIRECTORY SECONDS</pre>
 */
public final class ReportCost {
    private static final long SETTLE_MS = 4_000;
    private static final int REQUESTS_PER_TURN = 100;

    private ReportCost() {
    }

    public static void main(String[] arguments) {
        try {
            measure(arguments);
        } catch (Exception e) {
            // Threads of the broker's classes would keep it from ending.
            e.printStackTrace();
            System.exit(1);
        }
    }

    private static void measure(String[] arguments) throws Exception {
        int seconds = Integer.parseInt(arguments[1]);
        try (ManyQuotas quotas = new ManyQuotas(ManyQuotas.Kind.KQUOTA_TOPICS_OVER, Path.of(arguments[0]))) {
            Thread requests = new Thread(() -> request(quotas), "requests");
            requests.setDaemon(true);
            requests.start();
            Thread.sleep(SETTLE_MS);
            long accounts = used("kquota-applied");
            long decisions = used("kquota-decision");
            long start = System.nanoTime();
            Thread.sleep(seconds * 1000L);
            double elapsed = (System.nanoTime() - start) / 1e9;
            System.out.printf(Locale.ROOT, "{\"accounts\": %.3f, \"decisions\": %.3f}%n", (used("kquota-applied") - accounts) / 1e6 / elapsed,
                (used("kquota-decision") - decisions) / 1e6 / elapsed);
            System.out.flush();
            requests.interrupt();
            requests.join();
        }
    }

    /** Keeps every client in use, at few requests a second. */
    private static void request(ManyQuotas quotas) {
        for (int client = 0; !Thread.currentThread().isInterrupted(); ) {
            for (int i = 0; i < REQUESTS_PER_TURN; i++) {
                quotas.meter(client);
                client = client + 1 == ManyQuotas.CLIENTS ? 0 : client + 1;
            }
            LockSupport.parkNanos(10_000_000);
        }
    }

    private static long used(String name) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        return Arrays.stream(threads.getThreadInfo(threads.getAllThreadIds()))
            .filter(thread -> thread != null && thread.getThreadName().startsWith(name)).mapToLong(ThreadInfo::getThreadId)
            .map(threads::getThreadCpuTime).sum();
    }
}
