package org.kquota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.config.KquotaConfig;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** A request thread in the plug-in, while decisions change under it. */
class RequestPathTest {
    private static final int THREADS = 2;
    private static final int REQUESTS = 200_000;
    private static final int ROUNDS = 5;
    private static final List<Action> WRITE = List.of(TestRequest.writeTo("orders"));

    @TempDir
    private Path directory;

    private record Cost(long systemCalls, long blocked) {
    }

    private static final Cost NOTHING = new Cost(0, 0);

    @Test
    @Tag("C8")
    void itDoesNoInputOrOutputAndNeverWaits() throws Exception {
        TestDecision decision = new TestDecision(directory);
        decision.write("OPEN", 1);
        Map<String, Object> properties = TestProperties.broker(directory);
        properties.put(KquotaConfig.MODE, "enforce");
        properties.put(KquotaConfig.FENCE_AUTHORIZER_CLASS, "none");
        properties.put("client.quota.callback.class", KquotaCallback.class.getName());
        properties.putAll(Map.of(
            "kquota.quota.produce.default", "900G", "kquota.quota.produce.overrides", "client-7:800G",
            "kquota.quota.groups", "named,matched",
            "kquota.quota.group.named.principals", "User:user-1;User:user-2*", "kquota.quota.group.named.request", "500",
            "kquota.quota.group.matched.client.ids", "~client-[0-9]*5", "kquota.quota.group.matched.produce", "700G"));
        KquotaCallback callback = new KquotaCallback();
        callback.configure(properties);
        KquotaAuthorizer fence = new KquotaAuthorizer();
        fence.configure(properties);
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        try {
            List<Future<Cost>> costs = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                costs.add(threads.submit(() -> cost(callback, fence)));
            }
            String[] states = {"THROTTLE", "PAUSE", "OPEN"};
            double[] factors = {0.5, 0, 1};
            for (int i = 0; !costs.stream().allMatch(Future::isDone); i++) {
                decision.write(states[i % 3], factors[i % 3]);
                Thread.sleep(20);
            }
            for (Future<Cost> cost : costs) {
                assertEquals(NOTHING, cost.get());
            }
        } finally {
            threads.shutdownNow();
            fence.close();
            callback.close();
        }
    }

    /** The least of a few rounds: what the JVM does now and then, such as to load a class, is not ours. */
    private static Cost cost(KquotaCallback callback, KquotaAuthorizer fence) throws IOException {
        // Classes are loaded and clients become known, in each state.
        for (long end = System.nanoTime() + 2_000_000_000L; System.nanoTime() < end; ) {
            requests(callback, fence, 1_000);
        }
        Cost least = round(callback, fence);
        for (int more = 1; more < ROUNDS && !least.equals(NOTHING); more++) {
            Cost next = round(callback, fence);
            least = new Cost(Math.min(least.systemCalls, next.systemCalls), Math.min(least.blocked, next.blocked));
        }
        return least;
    }

    private static Cost round(KquotaCallback callback, KquotaAuthorizer fence) throws IOException {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long id = Thread.currentThread().getId();
        readsOfThisThread();
        long readsOfReading = -readsOfThisThread() + readsOfThisThread();
        long before = readsOfThisThread();
        long blockedBefore = threads.getThreadInfo(id).getBlockedCount();
        requests(callback, fence, REQUESTS);
        long blocked = threads.getThreadInfo(id).getBlockedCount() - blockedBefore;
        return new Cost(readsOfThisThread() - before - readsOfReading, blocked);
    }

    private static void requests(KquotaCallback callback, KquotaAuthorizer fence, int count) {
        for (int i = 0; i < count; i++) {
            KafkaPrincipal principal = new KafkaPrincipal("User", i % 10 == 0 ? "admin" : "user-" + i % 7);
            try {
                fence.authorize(new TestRequest(ApiKeys.PRODUCE.id, principal, "app"), WRITE);
            } catch (NotEnoughReplicasException e) {
                assertTrue(i % 10 != 0, "exempt");
            }
            for (ClientQuotaType type : List.of(ClientQuotaType.PRODUCE, ClientQuotaType.REQUEST)) {
                Map<String, String> tags = callback.quotaMetricTags(type, principal, "client-" + i % 50);
                callback.quotaResetRequired(type);
                if (i % 5 == 0) {
                    Double limit = callback.quotaLimit(type, tags);
                    assertTrue(limit == null || limit > 0);
                }
            }
        }
    }

    /** System calls of this thread that read or write, as the kernel counts them. */
    private static long readsOfThisThread() throws IOException {
        return Files.readAllLines(Path.of("/proc/thread-self/io")).stream().filter(line -> line.startsWith("sysc"))
            .mapToLong(line -> Long.parseLong(line.substring(line.indexOf(' ') + 1))).sum();
    }
}
