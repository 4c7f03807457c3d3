package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.applied.AppliedState.Mechanism;
import org.kquota.decision.Scope;
import org.kquota.decision.State;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import javax.management.ObjectName;

/** Decisions about single topics in a real broker, with real clients: only those that write to a topic at stake are held. */
class LiveTopicsTest {
    private static final double MB = 1e6;
    private static final Map<String, Object> ACKS_NONE = Map.of("acks", "0", "enable.idempotence", false);

    @TempDir
    private Path directory;
    private final Map<String, Load> loads = new TreeMap<>();

    @AfterEach
    void closeLoads() {
        loads.values().forEach(Load::close);
    }

    private static void createTopics(Admin admin, Map<String, Integer> partitions) throws Exception {
        admin.createTopics(partitions.entrySet().stream().map(topic -> new NewTopic(topic.getKey(), topic.getValue(), (short) 1)).toList()).all().get();
    }

    private static void open(LiveBroker broker) throws Exception {
        broker.decide("OPEN", 1, "enforce", 600_000);
        broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN && applied.lost() == null);
    }

    private static long endOffset(Admin admin, String topic, int partitions) throws Exception {
        return admin.listOffsets(IntStream.range(0, partitions).boxed().collect(Collectors.toMap(i -> new TopicPartition(topic, i), i -> OffsetSpec.latest())))
            .all().get().values().stream().mapToLong(end -> end.offset()).sum();
    }

    /** How many records a topic has. The end of a transaction is none: on a busy machine it may follow its records into a pause. */
    private static long records(LiveBroker broker, String topic, int partitions) throws Exception {
        Map<String, Object> settings = broker.clientSettings(LiveBroker.AGENT, "counter");
        settings.put("enable.metrics.push", false);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> all = IntStream.range(0, partitions).mapToObj(i -> new TopicPartition(topic, i)).toList();
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            AtomicLong count = new AtomicLong();
            LiveBroker.await("all is read", () -> {
                count.addAndGet(consumer.poll(Duration.ofMillis(200)).count());
                return all.stream().allMatch(each -> consumer.position(each) >= ends.get(each));
            });
            return count.get();
        }
    }

    private void load(LiveBroker broker, String name, List<String> topics, double megabytes, Map<String, Object> settings) {
        loads.put(name, new Load(broker, "alice", name, topics, megabytes * MB, settings));
    }

    private void awaitProducing() throws Exception {
        long started = System.nanoTime();
        for (Load load : loads.values()) {
            LiveBroker.await("every client produces", () -> load.bytes(started, System.nanoTime()) > 0.2 * MB, load::story);
        }
    }

    /**
     * How much of what it sends to the topic is acknowledged, from one moment to the other. The rate before would be no measure: on a busy machine clients still send what
     * they gathered while they began.
     */
    private double keeps(String name, String topic, long from, long to) {
        Load load = loads.get(name);
        return load.bytes(topic, from, to) / (load.offeredRate() * (to - from) / 1e9);
    }

    /** Nothing lands on the full topic, and clients that write to others do not notice. */
    @Test
    @Tag("G1")
    void aPauseOfATopicLetsNotAByteIntoItAndHoldsNoOther() throws Exception {
        try (LiveBroker broker = new LiveBroker(directory, LiveFenceTest.FENCED); Admin admin = broker.admin()) {
            open(broker);
            createTopics(admin, Map.of("full", 3, "wide", 40, "healthy", 1));
            long began = System.nanoTime();
            loads.put("exempt", new Load(broker, LiveBroker.AGENT, "kquota-1-publish", "exempt", 0.3 * MB));
            load(broker, "only-full", List.of("full"), 0.3, Map.of());
            load(broker, "only-healthy", List.of("healthy"), 0.5, Map.of());
            load(broker, "mixed", List.of("full", "wide"), 0.4, Map.of("partitioner.class", "org.apache.kafka.clients.producer.RoundRobinPartitioner"));
            load(broker, "transactional-full", List.of("full"), 0.2, Map.of("transactional.id", "full"));
            load(broker, "transactional-healthy", List.of("healthy"), 0.2, Map.of("transactional.id", "healthy"));
            load(broker, "unanswered-full", List.of("full"), 0.2, ACKS_NONE);
            load(broker, "unanswered-healthy", List.of("healthy"), 0.2, ACKS_NONE);
            awaitProducing();
            Thread.sleep(3_000);
            broker.decideTopics("PAUSE", 0, "{\"full\": 0, \"not-there\": 0}");
            broker.awaitApplied("PAUSE by the fence", applied -> applied.scope() == Scope.TOPICS && applied.mechanism() == Mechanism.FENCE);
            assertEquals(admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get().size(), broker.applied().clusterTopics());
            long before = LiveBroker.atRest("requests authorized before are appended", () -> records(broker, "full", 3));
            // Records that are refused wait for another try: a delay, and no loss of rate.
            Thread.sleep(2_000);
            long from = System.nanoTime();
            Thread.sleep(8_000);
            long to = System.nanoTime();
            assertEquals(before, records(broker, "full", 3), "no record may land");
            // A busy machine slows all producers, the exempt one too.
            double machine = Math.min(1, keeps("exempt", "exempt", from, to));
            for (String healthy : List.of("only-healthy/healthy", "mixed/wide", "transactional-healthy/healthy", "unanswered-healthy/healthy")) {
                String name = healthy.substring(0, healthy.indexOf('/'));
                double ratio = keeps(name, healthy.substring(healthy.indexOf('/') + 1), from, to) / machine;
                System.out.printf("%s keeps %.2f of its rate%n", healthy, ratio);
                // A transaction waits for its commit, so that more than the machine's share is lost. Records that share a refused request wait for its
                // next try, a second at most (retry.backoff.max.ms): of these 8 s the last one may be owed.
                double least = Map.of("transactional-healthy", 0.8, "mixed", 0.95 - 1.0 / 8).getOrDefault(name, 0.95);
                assertTrue(ratio >= least, () -> healthy + " keeps " + ratio + " of its rate: " + loads.get(name).story());
            }
            loads.forEach((name, load) -> assertEquals(0, load.metric("produce-throttle-time-max"), name + " is muted"));

            long released = System.nanoTime();
            open(broker);
            Load mixed = loads.get("mixed");
            LiveBroker.await("the backlog follows", () -> mixed.bytes("full", began, System.nanoTime()) > 0.95 * mixed.bytes("wide", began, System.nanoTime()),
                () -> mixed.bytes("full", began, System.nanoTime()) + " of " + mixed.bytes("wide", began, System.nanoTime()) + ": " + mixed.story());
            System.out.printf("the backlog of the full topic was there after %.1f s%n", (System.nanoTime() - released) / 1e9);
            loads.forEach((name, load) -> assertEquals(0, load.failed(), load::story));
        }
    }

    private static double appended(LiveBroker broker, String topic) throws Exception {
        return broker.jmx(connection -> ((Number) connection.getAttribute(
            new ObjectName("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=" + topic), "Count")).doubleValue());
    }

    /** One topic keeps its part, another one nothing, and a third all; and who wants no answers is refused only where it writes to a throttled one. */
    @Test
    @Tag("A7")
    @Tag("G5")
    void aThrottledTopicComesToItsTargetNextToAPausedAndAHealthyOne() throws Exception {
        double factor = 0.3;
        try (LiveBroker broker = new LiveBroker(directory, LiveFenceTest.FENCED); Admin admin = broker.admin()) {
            open(broker);
            createTopics(admin, Map.of("filling", 1, "full", 1, "healthy", 1, "filling-none", 1));
            loads.put("exempt", new Load(broker, LiveBroker.AGENT, "kquota-1-publish", "exempt", 0.3 * MB));
            for (int i = 0; i < 3; i++) {
                load(broker, "filling-" + i, List.of("filling"), 0.5, Map.of());
            }
            load(broker, "full", List.of("full"), 0.5, Map.of());
            load(broker, "healthy", List.of("healthy"), 1, Map.of());
            load(broker, "unanswered-healthy", List.of("healthy"), 0.3, ACKS_NONE);
            load(broker, "unanswered-filling", List.of("filling-none"), 0.5, ACKS_NONE);
            awaitProducing();
            // Until every baseline is an average over its ten seconds.
            Thread.sleep(14_000);
            broker.decideTopics("PAUSE", 0, "{\"filling\": " + factor + ", \"full\": 0, \"filling-none\": 0.5}");
            broker.awaitApplied("THROTTLE and PAUSE by the fence", applied -> applied.scope() == Scope.TOPICS && applied.mechanism() == Mechanism.FENCE);
            Thread.sleep(4_000);
            long settled = System.nanoTime();
            long end = endOffset(admin, "full", 1);
            double unansweredBefore = appended(broker, "filling-none");
            double fillingBefore = appended(broker, "filling");
            Thread.sleep(15_000);
            long to = System.nanoTime();
            double seconds = (to - settled) / 1e9;
            double unansweredRate = (appended(broker, "filling-none") - unansweredBefore) / seconds;
            double filling = (appended(broker, "filling") - fillingBefore) / seconds;
            double machine = Math.min(1, keeps("exempt", "exempt", settled, to));
            double healthy = keeps("healthy", "healthy", settled, to) / machine;
            double unansweredHealthy = keeps("unanswered-healthy", "healthy", settled, to) / machine;
            double ratio = rate("filling-", settled, to) / (factor * 3 * 0.5 * MB);
            System.out.printf("mean / target %.2f (appended %.0f B/s), healthy %.2f, acks=0 to a healthy topic %.2f, to a throttled one %.0f B/s of %.0f%n", ratio, filling,
                healthy, unansweredHealthy, unansweredRate, 0.5 * MB);
            assertEquals(end, endOffset(admin, "full", 1), "no record may land in the paused topic");
            // On a busy machine clients come late for their turns; never may more land.
            assertTrue(ratio > 0.7 * machine && ratio < 1.15, ratio + " of the target, where the machine keeps " + machine);
            assertTrue(healthy >= 0.9, "a healthy topic keeps " + healthy + " of its rate");
            assertTrue(unansweredHealthy >= 0.9, "without answers it keeps " + unansweredHealthy);
            assertTrue(unansweredRate > 0 && unansweredRate < 0.8 * 0.5 * MB, "who wants no answers has its turns: " + unansweredRate);
            for (String free : List.of("healthy", "unanswered-healthy", "unanswered-filling", "full", "filling-0")) {
                assertEquals(0, loads.get(free).metric("produce-throttle-time-max"), free + " is muted");
            }
            Map<String, Double> factors = broker.applied().clients().top().stream().filter(client -> client.factor() != null)
                .collect(Collectors.toMap(client -> client.clientId(), client -> client.factor()));
            assertEquals(Map.of("filling-0", factor, "filling-1", factor, "filling-2", factor, "full", 0.0, "unanswered-filling", 0.5), factors);
            open(broker);
            long released = System.nanoTime();
            for (Load load : loads.values()) {
                LiveBroker.await("back", () -> load.bytes(released, System.nanoTime()) > 0, load::story);
            }
            loads.forEach((name, load) -> assertEquals(0, load.failed(), load::story));
        }
    }

    private double rate(String prefix, long from, long to) {
        return loads.entrySet().stream().filter(load -> load.getKey().matches(prefix + "\\d")).mapToDouble(load -> load.getValue().rate(from, to)).sum();
    }

    @Test
    @Tag("G3")
    void withoutTheFenceTheWorstOfAllTopicsHoldsAllProducers() throws Exception {
        try (LiveBroker broker = new LiveBroker(directory, Map.of())) {
            open(broker);
            load(broker, "healthy", List.of("healthy"), 5, Map.of());
            awaitProducing();
            Thread.sleep(4_000);
            broker.decideTopics("PAUSE", 0, "{\"full\": 0}");
            broker.awaitApplied("PAUSE by the governor", applied -> applied.mechanism() == Mechanism.GOVERNOR && applied.scope() == Scope.CLUSTER);
            assertHeld(loads.get("healthy"));
        }
    }

    private static void assertHeld(Load load) throws Exception {
        Thread.sleep(5_000);
        long from = System.nanoTime();
        Thread.sleep(5_000);
        long bytes = load.bytes(from, System.nanoTime());
        assertTrue(bytes <= 2 * Load.LARGEST_REQUEST_BYTES, bytes + " bytes leaked in 5 s, where delays are about as long");
        assertEquals(0, load.failed(), load::story);
    }

    @Test
    @Tag("long")
    void afterAFaultOfTheFenceTheWorstOfAllTopicsHoldsAllProducers() throws Exception {
        Map<String, String> settings = new TreeMap<>(LiveFenceTest.FENCED);
        settings.put("authorizer.class.name", "org.kquota.FaultyAuthorizer");
        try (LiveBroker broker = new LiveBroker(directory, settings)) {
            open(broker);
            load(broker, "healthy", List.of("healthy"), 5, Map.of());
            awaitProducing();
            Thread.sleep(4_000);
            broker.decideTopics("PAUSE", 0, "{\"full\": 0}");
            broker.awaitApplied("PAUSE by the fence", applied -> applied.mechanism() == Mechanism.FENCE);
            long paused = System.nanoTime();
            Thread.sleep(2_000);
            assertTrue(loads.get("healthy").rate(paused, System.nanoTime()) > 2 * MB, () -> "not held: " + loads.get("healthy").story());
            try (Load poison = new Load(broker, "bob", "poison", "another", MB / 100)) {
                broker.awaitApplied("PAUSE by the governor", applied -> applied.mechanism() == Mechanism.GOVERNOR && applied.scope() == Scope.CLUSTER);
                assertHeld(loads.get("healthy"));
                assertEquals(0, poison.failed());
            }
        }
    }
}
