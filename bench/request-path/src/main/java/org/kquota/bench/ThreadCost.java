package org.kquota.bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.locks.LockSupport;

/**
 * The cost of the plug-in's own threads with every client in use: of the one that keeps the accounts of clients and writes the report, and of
 * the one that judges topics and decisions. For each line on its input it measures once and prints one JSON object, in milliseconds of
 * processor time per second; between the lines the caller may change the decision.
 *
 * <pre>ThreadCost DIRECTORY CLIENTS SECONDS</pre>
 *
 * <p>With 0 clients: those of {@link ManyQuotas}, while topics are over their thresholds.
 */
public final class ThreadCost {
    private static final long SETTLE_MS = 4_000;
    private static final int REQUESTS_PER_TURN = 100;

    private ThreadCost() {
    }

    public static void main(String[] arguments) {
        Path directory = Path.of(arguments[0]);
        int clients = Integer.parseInt(arguments[1]);
        try (ProduceQuotas quotas = clients == 0 ? new ManyQuotas(ManyQuotas.Kind.KQUOTA_TOPICS_OVER, directory)
            : ProduceQuotas.of(ProduceQuotas.Kind.KQUOTA_WITHOUT_QUOTAS, clients, directory, clients + 10)) {
            Thread requests = new Thread(() -> request(quotas), "requests");
            requests.setDaemon(true);
            requests.start();
            BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            while (orders.readLine() != null) {
                Thread.sleep(SETTLE_MS);
                measure(Integer.parseInt(arguments[2]));
            }
            requests.interrupt();
            requests.join();
        } catch (Exception e) {
            // Threads of the broker's classes would keep it from ending.
            e.printStackTrace();
            System.exit(1);
        }
    }

    private static void measure(int seconds) throws InterruptedException {
        long accounts = used("kquota-applied");
        long decisions = used("kquota-decision");
        long start = System.nanoTime();
        Thread.sleep(seconds * 1000L);
        double elapsed = (System.nanoTime() - start) / 1e9;
        System.out.printf(Locale.ROOT, "{\"accounts\": %.4f, \"decisions\": %.4f}%n", (used("kquota-applied") - accounts) / 1e6 / elapsed,
            (used("kquota-decision") - decisions) / 1e6 / elapsed);
        System.out.flush();
    }

    /** Keeps every client in use, at few requests a second. */
    private static void request(ProduceQuotas quotas) {
        for (int client = 0; !Thread.currentThread().isInterrupted(); ) {
            for (int i = 0; i < REQUESTS_PER_TURN; i++) {
                quotas.record(client, 10_000);
                client = client + 1 == quotas.clients() ? 0 : client + 1;
            }
            LockSupport.parkNanos(10_000_000);
        }
    }

    private static long used(String name) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long[] ids = Arrays.stream(threads.getThreadInfo(threads.getAllThreadIds()))
            .filter(thread -> thread != null && thread.getThreadName().startsWith(name)).mapToLong(ThreadInfo::getThreadId).toArray();
        if (ids.length == 0) {
            throw new IllegalStateException("no thread is called " + name + "...");
        }
        return Arrays.stream(ids).map(threads::getThreadCpuTime).sum();
    }
}
