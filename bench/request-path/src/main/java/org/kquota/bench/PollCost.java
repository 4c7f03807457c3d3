package org.kquota.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.locks.LockSupport;

/**
 * The cost of the plug-in's own thread with this many tag sets in use: its processor time over some seconds in the life of a
 * broker, divided by the looks in it. For each line on its input it measures once and prints one JSON object: between
 * them the caller may change the decision.
 *
 * <pre>PollCost DIRECTORY CLIENTS SECONDS</pre>
 */
public final class PollCost {
    private static final String THREADS = "kquota-decision";
    private static final double LOOKS_PER_SECOND = 10;
    private static final long SETTLE_MS = 4_000;
    private static final int REQUESTS_PER_TURN = 100;

    private PollCost() {
    }

    public static void main(String[] arguments) throws ReflectiveOperationException, IOException, InterruptedException {
        int clients = Integer.parseInt(arguments[1]);
        int seconds = Integer.parseInt(arguments[2]);
        try (ProduceQuotas quotas = new ProduceQuotas(ProduceQuotas.Kind.KQUOTA_WITHOUT_QUOTAS, clients, arguments[0], clients + 10)) {
            Thread requests = new Thread(() -> request(quotas), "requests");
            requests.setDaemon(true);
            requests.start();
            BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            while (orders.readLine() != null) {
                Thread.sleep(SETTLE_MS);
                long before = used();
                long start = System.nanoTime();
                Thread.sleep(seconds * 1000L);
                double looks = (System.nanoTime() - start) / 1e9 * LOOKS_PER_SECOND;
                System.out.printf(Locale.ROOT, "{\"clients\": %d, \"milliseconds\": %.4f}%n", clients, (used() - before) / 1e6 / looks);
                System.out.flush();
            }
            requests.interrupt();
            requests.join();
        }
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

    private static long used() {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long[] ids = Arrays.stream(threads.getThreadInfo(threads.getAllThreadIds()))
            .filter(thread -> thread != null && thread.getThreadName().startsWith(THREADS)).mapToLong(thread -> thread.getThreadId()).toArray();
        if (ids.length == 0) {
            throw new IllegalStateException("no thread is called " + THREADS + "...");
        }
        return Arrays.stream(ids).map(threads::getThreadCpuTime).sum();
    }
}
