package org.kquota.metering;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSetMemo;
import org.kquota.quota.Tags;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntConsumer;

/**
 * The cost of the request path's caches, next to Caffeine's with the same bounds: processor time, so that it may run on a busy machine, and the lock waits
 * of request threads where each brings a client that is not known. No test; docs/adr/0017 has its figures.
 */
final class CacheCost {
    private static final int CLIENTS = 10_000;
    private static final int MAX = 20_000;
    private static final int OPERATIONS = 2_000_000;
    private static final int ROUNDS = 7;
    private static final int THREADS = 4;
    private static final ThreadMXBean THREAD_BEAN = ManagementFactory.getThreadMXBean();

    private record Key(KafkaPrincipal principal, String clientId) {
    }

    private record LimitKey(ClientQuotaType type, Map<String, String> tags) {
    }

    private final KafkaPrincipal[] principals = new KafkaPrincipal[CLIENTS];
    private final String[] clientIds = new String[CLIENTS];
    private volatile Object last;

    private CacheCost() {
        for (int i = 0; i < CLIENTS; i++) {
            principals[i] = new KafkaPrincipal("User", "user-" + i);
            clientIds[i] = "client-" + i;
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        CacheCost cost = new CacheCost();
        cost.tagSets();
        cost.limits();
        cost.strangers();
    }

    private void tagSets() {
        TagSetMemo memo = new TagSetMemo();
        Cache<Key, TagSetMemo.Known> caffeine = Caffeine.newBuilder().maximumSize(1 << 15).build();
        for (int i = 0; i < CLIENTS; i++) {
            TagSetMemo.Known known = new TagSetMemo.Known(principals[i], clientIds[i], new TagSet(Tags.of("", clientIds[i])));
            memo.remember(memo.generation(), known);
            caffeine.put(new Key(principals[i], clientIds[i]), known);
        }
        compare("tag set of a client", i -> last = memo.generation().find(principals[i], clientIds[i]),
            i -> last = caffeine.getIfPresent(new Key(principals[i], clientIds[i])));
    }

    private void limits() {
        LastLimits limits = new LastLimits(CLIENTS);
        Cache<LimitKey, AtomicReference<Double>> caffeine = Caffeine.newBuilder().maximumSize(2 * CLIENTS).build();
        Double limit = 5.0;
        compare("last limit of tags", i -> limits.remember(ClientQuotaType.PRODUCE, Tags.of("", clientIds[i]), limit), i -> {
            LimitKey key = new LimitKey(ClientQuotaType.PRODUCE, Tags.of("", clientIds[i]));
            AtomicReference<Double> known = caffeine.getIfPresent(key);
            if (known == null) {
                caffeine.put(key, new AtomicReference<>(limit));
            } else {
                known.setRelease(limit);
            }
        });
    }

    private void compare(String what, IntConsumer ours, IntConsumer caffeines) {
        double[] our = new double[ROUNDS];
        double[] caffeine = new double[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            our[round] = nanosEach(ours);
            caffeine[round] = nanosEach(caffeines);
        }
        Arrays.sort(our);
        Arrays.sort(caffeine);
        System.out.printf("%s: ours %.0f ns, Caffeine %.0f ns%n", what, our[ROUNDS / 2], caffeine[ROUNDS / 2]);
    }

    private static double nanosEach(IntConsumer operation) {
        long before = THREAD_BEAN.getCurrentThreadCpuTime();
        int client = 0;
        for (int i = 0; i < OPERATIONS; i++) {
            // Far from the one before, as requests are.
            client = (client + 7_919) % CLIENTS;
            operation.accept(client);
        }
        return (double) (THREAD_BEAN.getCurrentThreadCpuTime() - before) / OPERATIONS;
    }

    /** Each request brings a new principal. */
    private void strangers() throws InterruptedException {
        THREAD_BEAN.setThreadContentionMonitoringEnabled(true);
        PrincipalResolver resolver = new PrincipalResolver(org.kquota.quota.ExemptPrincipals.parse("User:admin"), org.kquota.group.Groups.NONE);
        Cache<KafkaPrincipal, Object> caffeine = Caffeine.newBuilder().maximumSize(MAX).build();
        waits("ours", principal -> last = resolver.of(principal));
        waits("Caffeine", principal -> last = caffeine.get(principal, KafkaPrincipal::toString));
    }

    private static void waits(String whose, java.util.function.Consumer<KafkaPrincipal> resolve) throws InterruptedException {
        long[][] found = new long[THREADS][];
        Thread[] threads = new Thread[THREADS];
        for (int thread = 0; thread < THREADS; thread++) {
            int number = thread;
            threads[thread] = new Thread(() -> {
                for (int i = 0; i < OPERATIONS / THREADS; i++) {
                    resolve.accept(new KafkaPrincipal("User", number + "-" + i));
                }
                ThreadInfo info = THREAD_BEAN.getThreadInfo(Thread.currentThread().getId());
                found[number] = new long[] {info.getBlockedCount(), info.getWaitedCount(), THREAD_BEAN.getCurrentThreadCpuTime()};
            });
            threads[thread].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        long blocked = Arrays.stream(found).mapToLong(each -> each[0]).sum();
        long waited = Arrays.stream(found).mapToLong(each -> each[1]).sum();
        double nanos = Arrays.stream(found).mapToLong(each -> each[2]).sum() / (double) OPERATIONS;
        System.out.printf("principals that are not known: %s %.0f ns, threads blocked %d times and waited %d times%n", whose, nanos, blocked, waited);
    }
}
