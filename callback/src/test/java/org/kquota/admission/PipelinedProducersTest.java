package org.kquota.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.kquota.TestRequest;
import org.kquota.decision.Decision;
import org.kquota.decision.DecisionInForce;
import org.kquota.decision.EffectiveDecision;
import org.kquota.decision.Mode;
import org.kquota.decision.State;
import org.kquota.error.Errors;
import org.kquota.fence.Fence;
import org.kquota.group.GroupsBuilder;
import org.kquota.metering.NodeQuotas;
import org.kquota.quota.ExemptPrincipals;
import org.kquota.quota.StaticQuotas;
import org.kquota.threshold.ConstantBytesIn;
import org.kquota.threshold.Thresholds;

import java.net.InetAddress;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

/**
 * Admission behind the fence over time, on a clock of the test: producers without idempotence, each with a connection over which it sends numbered requests before
 * the earlier ones are answered. As Kafka's clients do, it sends a refused one again after a backoff, and no later one before that.
 */
class PipelinedProducersTest {
    private static final long MS = 1_000_000L;
    private static final int UNDER_WAY = 5;
    private static final double FACTOR = 0.2;
    private static final long BEGUN = 5_000_000_000L;
    private static final List<Action> WRITE = List.of(TestRequest.writeTo("orders"));
    private static final List<AuthorizationResult> ALLOWED = List.of(AuthorizationResult.ALLOWED);

    @TempDir
    private Path directory;
    private NodeQuotas quotas;
    private final List<Producer> producers = new ArrayList<>();
    private long nanos;
    private long landedBytes;
    private State state;
    private Random random;
    private Fence fence;

    private static EffectiveDecision decided(State state) {
        double factor = state == State.OPEN ? 1 : state == State.PAUSE ? 0 : FACTOR;
        return EffectiveDecision.decided(new Decision(1, "c", 1, 1, Mode.ENFORCE, state, factor, false, "b", 1), Mode.ENFORCE,
            System.nanoTime() + 3_600_000_000_000L, State.PAUSE);
    }

    /** A request that is to be sent, or is on its way. */
    private static final class Numbered {
        final int number;
        int attempts;
        /** When it may be sent, arrives or is answered: whichever comes next. */
        long nextNanos;
        boolean refused;

        Numbered(int number) {
            this.number = number;
        }
    }

    /** A client with one connection. */
    private final class Producer {
        final RequestContext context;
        final double bytesPerSecond;
        final int requestBytes;
        final long latencyNanos = MS * (1 + random.nextInt(20));
        final TreeMap<Integer, Numbered> waiting = new TreeMap<>();
        final Deque<Numbered> sent = new ArrayDeque<>();
        final Deque<Numbered> handled = new ArrayDeque<>();
        final ClientShare share;
        double backlog = random.nextDouble();
        int made;
        int landed;
        long lastLandedNanos;
        long longestSilenceNanos;
        int counted;

        Producer(int number, double bytesPerSecond, int requestBytes) {
            this.bytesPerSecond = bytesPerSecond;
            this.requestBytes = requestBytes;
            context = new RequestContext(new RequestHeader(ApiKeys.PRODUCE, ApiKeys.PRODUCE.latestVersion(), "app-" + number, 1), "connection-" + number,
                InetAddress.getLoopbackAddress(), new KafkaPrincipal(KafkaPrincipal.USER_TYPE, "user-" + number), new ListenerName("CLIENTS"),
                SecurityProtocol.SASL_PLAINTEXT, ClientInformation.EMPTY, false);
            share = quotas.admitted(context.principal(), context.clientId(), 1).share();
        }

        /** Counts from now on. */
        void forget() {
            counted = 0;
            longestSilenceNanos = 0;
            lastLandedNanos = nanos;
        }

        double silentSeconds() {
            return Math.max(longestSilenceNanos, nanos - lastLandedNanos) / 1e9;
        }

        void step() {
            backlog += bytesPerSecond / requestBytes * MS / 1e9;
            for (; backlog >= 1 && waiting.size() < 100; backlog--) {
                waiting.put(made, new Numbered(made++));
            }
            receive();
            for (Numbered first = first(); first != null; first = first()) {
                waiting.remove(first.number);
                first.nextNanos = nanos + latencyNanos + random.nextInt(5) * MS;
                sent.add(first);
            }
            arrive();
        }

        /** Its next request, or null: a refused one keeps the later ones from being sent before it. */
        private Numbered first() {
            boolean maySend = sent.size() + handled.size() < UNDER_WAY && !waiting.isEmpty();
            return maySend && waiting.firstEntry().getValue().nextNanos <= nanos ? waiting.firstEntry().getValue() : null;
        }

        /** The broker handles one request of a connection after the other. */
        private void arrive() {
            if (sent.isEmpty() || sent.peek().nextNanos > nanos) {
                return;
            }
            Numbered request = sent.poll();
            request.refused = fence.refusal(context, WRITE, ALLOWED) != null;
            request.nextNanos = nanos + latencyNanos;
            handled.add(request);
            if (request.refused) {
                return;
            }
            assertEquals(landed, request.number, "in " + state + ", after " + (nanos - BEGUN) / MS + " ms, over " + context.connectionId());
            landed++;
            counted++;
            landedBytes += requestBytes;
            longestSilenceNanos = Math.max(longestSilenceNanos, nanos - lastLandedNanos);
            lastLandedNanos = nanos;
            share.arrived(requestBytes);
        }

        private void receive() {
            while (!handled.isEmpty() && handled.peek().nextNanos <= nanos) {
                Numbered answered = handled.poll();
                if (answered.refused) {
                    double backoffMs = Math.min(1000, 100 * Math.pow(2, answered.attempts++)) * (0.8 + 0.4 * random.nextDouble());
                    answered.nextNanos = nanos + (long) (backoffMs * MS);
                    waiting.put(answered.number, answered);
                }
            }
        }
    }

    private void begin(int count, double bytesPerSecond, int requestBytes, long seed) {
        random = new Random(seed);
        // Other tests make shares, too, and the number of a share decides who is first among equals.
        ClientShare.MADE.set(0);
        nanos = BEGUN;
        landedBytes = 0;
        state = State.OPEN;
        producers.clear();
        quotas = new NodeQuotas(ExemptPrincipals.parse("User:admin"), new GroupsBuilder().build(), type -> StaticQuotas.NONE, 1000,
            new DecisionInForce(decided(State.OPEN)));
        fence = new Fence(quotas, new Thresholds(directory.resolve("none.json"), Set.of(), new ConstantBytesIn(0, 0), () -> null, new Errors()), new Errors(), () -> { }, () -> nanos);
        for (int i = 0; i < count; i++) {
            producers.add(new Producer(i, bytesPerSecond, requestBytes));
        }
    }

    private void enter(State next) {
        state = next;
        quotas.decision().publish(decided(next));
        if (next != State.THROTTLE) {
            quotas.admission().end();
        }
    }

    private void run(double seconds) {
        double known = producers.stream().mapToDouble(producer -> producer.bytesPerSecond).sum();
        for (long end = nanos + (long) (seconds * 1e9); nanos < end; nanos += MS) {
            if (state == State.THROTTLE && nanos % (100 * MS) == 0) {
                producers.forEach(producer -> producer.share.know(producer.bytesPerSecond, producer.requestBytes));
                quotas.admission().plan(new Target(FACTOR, known, known, 0.05, 1, 0), () -> landedBytes, nanos);
                fence.keep(nanos);
            }
            int first = random.nextInt(producers.size());
            for (int i = 0; i < producers.size(); i++) {
                producers.get((first + i) % producers.size()).step();
            }
        }
    }

    /** Each request that lands is the next one of its connection: what stands behind a refused one was refused. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    @Tag("A7")
    void whatLandsOfAConnectionIsInTheOrderOfSendingInEachState(long seed) {
        Random mix = new Random(seed);
        int requestBytes = 10_000 + mix.nextInt(100_000);
        begin(2 + mix.nextInt(15), requestBytes * (1 + 20 * mix.nextDouble()), requestBytes, seed);
        for (int phase = 0; phase < 12; phase++) {
            enter(State.values()[mix.nextInt(3)]);
            run(1 + 4 * mix.nextDouble());
        }
        enter(State.THROTTLE);
        run(20);
        assertTrue(fence.refusals() > 100, "refused: " + fence.refusals());
        assertTrue(producers.stream().allMatch(producer -> producer.landed > 0));
    }

    /** A round is one request of each, at the target. Silence is counted from the third round on: with it the backlogs have grown. */
    @Test
    @Tag("A7")
    void eachProducerHasItsTurnInEachRoundAndAllHaveTheSameShare() {
        for (long seed = 1; seed <= 20; seed++) {
            Random mix = new Random(seed);
            int count = 5 + mix.nextInt(20);
            int requestBytes = 10_000 + mix.nextInt(200_000);
            double roundSeconds = 3 + 17 * mix.nextDouble();
            begin(count, requestBytes / roundSeconds / FACTOR, requestBytes, seed);
            run(10);
            enter(State.THROTTLE);
            run(2 * roundSeconds);
            producers.forEach(Producer::forget);
            run(6 * roundSeconds);
            double silentRounds = producers.stream().mapToDouble(Producer::silentSeconds).max().orElseThrow() / roundSeconds;
            double sum = producers.stream().mapToDouble(producer -> producer.counted).sum();
            double fairness = sum * sum / count / producers.stream().mapToDouble(producer -> (double) producer.counted * producer.counted).sum();
            String story = String.format("seed %d: %d producers, rounds of %.1f s, silence of %.2f rounds, fairness %.3f, of the target %.2f", seed, count, roundSeconds,
                silentRounds, fairness, sum / count / 6);
            assertTrue(fairness >= 0.95, story);
            assertTrue(silentRounds <= 1.7, story);
        }
    }
}
