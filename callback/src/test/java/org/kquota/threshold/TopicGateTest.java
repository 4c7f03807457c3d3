package org.kquota.threshold;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.logging.log4j.Level;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.kquota.LogLines;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

class TopicGateTest {
    private static final TopicThresholds THRESHOLDS = new TopicThresholds(100, Map.of("A", 40L));

    /** Rates that the test chooses. */
    private static final class ChosenRates implements BytesIn {
        private double total;
        private final Map<String, Double> topics = new HashMap<>();

        @Override
        public double total() {
            return total;
        }

        @Override
        public double of(String topic) {
            return topics.getOrDefault(topic, 0.0);
        }
    }

    private final ChosenRates rates = new ChosenRates();
    private final TopicGate gate = new TopicGate(rates);

    private void judge(double total, Map<String, Double> topics) {
        rates.total = total;
        rates.topics.putAll(topics);
        gate.judge(THRESHOLDS, List.of("A", "b", "c"), 0, null);
    }

    @ParameterizedTest
    @CsvSource({"100,40,false", "101,40,false", "100,41,false", "1000,40,false", "100,1000,false", "100.1,40.1,true", "0,0,false"})
    @Tag("D6")
    void aTopicIsClosedOnlyWhileBothRatesAreAboveTheirThresholds(double total, double ofA, boolean closed) {
        judge(total, Map.of("A", ofA));
        assertEquals(closed, gate.isClosedFor("A"));
        assertEquals(closed, gate.isClosedForSome());
    }

    @Test
    @Tag("D6")
    @Tag("D3")
    void topicsWithoutAThresholdOfTheirOwnAreJudgedByTheirShare() {
        judge(200, Map.of("A", 10.0, "b", 30.0, "c", 30.1));
        assertEquals(Set.of("c"), gate.over().keySet());
    }

    @Test
    @Tag("D8")
    void itOpensAgainWhenEitherRateIsDown() {
        judge(101, Map.of("A", 41.0));
        assertTrue(gate.isClosedFor("A"));
        judge(101, Map.of("A", 39.9));
        assertFalse(gate.isClosedFor("A"));
        judge(101, Map.of("A", 41.0));
        judge(99, Map.of("A", 41.0));
        assertFalse(gate.isClosedFor("A"));
    }

    @Test
    @Tag("D4")
    void aTopicThatIsNoLongerHereIsNotClosed() {
        judge(101, Map.of("A", 41.0));
        gate.judge(THRESHOLDS, List.of("b"), 1, null);
        assertFalse(gate.isClosedForSome());
    }

    @Test
    void withoutThresholdsNothingIsClosed() {
        judge(101, Map.of("A", 41.0));
        gate.judge(null, List.of("A"), 1, null);
        assertFalse(gate.isClosedForSome());
    }

    @Test
    void whileItDoesNotActItIsKnownWhatItWouldDo() {
        rates.total = 101;
        rates.topics.put("A", 41.0);
        gate.judge(THRESHOLDS, List.of("A"), 0, "kquota.mode is observe");
        assertEquals(Set.of("A"), gate.over().keySet());
        assertFalse(gate.isClosedForSome());
        assertFalse(gate.isClosedFor("A"));
        gate.judge(THRESHOLDS, List.of("A"), 1, null);
        assertTrue(gate.isClosedFor("A"));
    }

    /** Where nearly all of a broker is over, and by turns: a line for each of them would fill a disk sooner than they do. */
    @Test
    void ofManyTopicsItLogsSome() {
        List<String> topics = IntStream.range(0, 1_000).mapToObj(i -> "topic-" + i).toList();
        topics.forEach(topic -> rates.topics.put(topic, 2.0));
        try (LogLines log = new LogLines(TopicGate.class)) {
            rates.total = 2_000;
            gate.judge(THRESHOLDS, topics, 0, null);
            assertEquals(1_000, gate.over().size());
            topics.forEach(gate::refused);
            rates.total = 0;
            gate.judge(THRESHOLDS, topics, TopicGate.LOG_NANOS, null);
            assertEquals(List.of(), log.lines().stream().filter(line -> !line.contains("topic")).toList());
            assertTrue(log.lines().size() < 50, log.lines().size() + " lines");
            assertTrue(log.lines().contains("980 more topics take nothing in from now on"), log.lines().toString());
            assertTrue(log.lines().contains("980 more topics had 980 produce requests refused"), log.lines().toString());
        }
    }

    private List<String> logged(long nanos, String whyNot, double ofA) {
        rates.total = 101;
        rates.topics.put("A", ofA);
        try (LogLines log = new LogLines(TopicGate.class, Level.INFO)) {
            gate.judge(THRESHOLDS, List.of("A"), nanos, whyNot);
            return log.lines();
        }
    }

    @Test
    void eachChangeIsLoggedOnce() {
        String over = "41 B/s come in, above its threshold of 40, and 101 in all, above the threshold of 100";
        assertEquals(List.of("topic A takes nothing in from now on: " + over), logged(0, null, 41));
        assertEquals(List.of(), logged(1, null, 41));
        assertEquals(List.of("topic A takes in again"), logged(2, null, 39));
        assertEquals(List.of(), logged(3, null, 39));
    }

    @Test
    void whileItDoesNotActTheLinesSayWhy() {
        String over = "41 B/s come in, above its threshold of 40, and 101 in all, above the threshold of 100";
        assertEquals(List.of("topic A would take nothing in from now on, but kquota.mode is observe: " + over), logged(0, "kquota.mode is observe", 41));
        assertEquals(List.of(), logged(1, "kquota.mode is observe", 41));
        assertEquals(List.of("topic A would take in again"), logged(2, "kquota.mode is observe", 39));
    }

    @Test
    void whenItBeginsToActItLogsEachTopicThatTakesNothingIn() {
        logged(0, "kquota.mode is observe", 41);
        assertEquals(1, logged(1, null, 41).stream().filter(line -> line.startsWith("topic A takes nothing in")).count());
        assertEquals(1, logged(2, "kquota.mode is observe", 41).stream().filter(line -> line.startsWith("topic A would take nothing in")).count());
    }

    @Test
    void refusalsAreLoggedNowAndThenTheMostFirst() {
        judge(200, Map.of("A", 41.0, "b", 70.0, "c", 70.0));
        for (String topic : List.of("c", "A", "c", "b", "A", "c")) {
            gate.refused(topic);
        }
        assertEquals(List.of(), refusalsLogged(TopicGate.LOG_NANOS - 1));
        assertEquals(List.of("3 produce requests to topic c", "2 produce requests to topic A", "1 produce requests to topic b"),
            refusalsLogged(TopicGate.LOG_NANOS));
        gate.refused("b");
        assertEquals(List.of(), refusalsLogged(2 * TopicGate.LOG_NANOS - 1));
        assertEquals(List.of("1 produce requests to topic b"), refusalsLogged(2 * TopicGate.LOG_NANOS));
    }

    private List<String> refusalsLogged(long nanos) {
        try (LogLines log = new LogLines(TopicGate.class)) {
            gate.judge(THRESHOLDS, List.of("A", "b", "c"), nanos, null);
            return log.lines().stream().filter(line -> line.contains(" were refused: ")).map(line -> line.substring(0, line.indexOf(" were"))).toList();
        }
    }

    @Test
    void twentyTopicsHaveALineEach() {
        List<String> topics = IntStream.range(0, 20).mapToObj(i -> "topic-" + i).toList();
        topics.forEach(topic -> rates.topics.put(topic, 20.0));
        try (LogLines log = new LogLines(TopicGate.class)) {
            rates.total = 400;
            gate.judge(THRESHOLDS, topics, 0, null);
            assertEquals(20, log.lines().size(), log.lines().toString());
            assertTrue(log.lines().stream().allMatch(line -> line.startsWith("topic topic-")), log.lines().toString());
        }
    }

    @Test
    @Tag("D9")
    void refusalsAreCounted() {
        judge(101, Map.of("A", 41.0));
        gate.refused("A");
        gate.refused("A");
        assertEquals(2, gate.refusals());
    }
}
