package org.kquota.govern;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.kquota.decision.State;
import org.kquota.quota.StockQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;
import org.kquota.quota.Tags;

import java.util.HashMap;
import java.util.Map;
import java.util.OptionalDouble;

class GovernorTest {
    private static final double MB = 1e6;

    static GovernorSettings settings(double windowSeconds) {
        return new GovernorSettings(windowSeconds, 10, 1_048_576, 10, 1_048_576, 0.05);
    }

    @ParameterizedTest
    @CsvSource({"11,20e6,0.5,100e3", "11,20e6,0.3,100e3", "11,20e6,0.1,16e3", "3,20e6,0.3,100e3", "11,5e6,0.5,16e3", "11,100e6,0.2,500e3"})
    @Tag("A7")
    void throttleComesToTheFactorWithoutLongSilence(double window, double rate, double factor, double request) {
        try (SimulatedBroker broker = new SimulatedBroker(settings(window))) {
            broker.connect("app", rate, request);
            broker.run(60);
            assertTrue(broker.rate(60) > 0.9 * rate);
            broker.decide(State.THROTTLE, factor);
            broker.run(2 * window);
            assertTrue(broker.longestMuteSeconds() <= 3, "at first: " + broker.longestMuteSeconds());
            broker.run(60);
            assertTrue(broker.longestMuteSeconds() <= 3, "then: " + broker.longestMuteSeconds());
            assertEquals(factor * rate, broker.rate(60), 0.1 * factor * rate);
            broker.decide(State.OPEN, 1);
            broker.run(11);
            broker.run(10);
            assertEquals(rate, broker.rate(10), 0.05 * rate);
        }
    }

    /** A fence lets nothing in but what was under way: that must not mute beyond the pause. */
    @ParameterizedTest
    @CsvSource({"11,1,20e6,100e3", "11,20,1e6,16e3", "3,1,20e6,100e3", "11,20,1e6,1e6"})
    void behindAFenceNoMuteOutlastsThePause(double window, int connections, double rate, double request) {
        try (SimulatedBroker broker = new SimulatedBroker(settings(window))) {
            for (int i = 0; i < connections; i++) {
                broker.connect("app-" + i, rate, request);
            }
            broker.run(60);
            broker.decide(State.PAUSE, 0);
            broker.fenced(true, false);
            broker.run(0.2);
            assertEquals(0, broker.longestMuteSeconds(), "mute of requests under way");
            broker.fenced(true, true);
            broker.run(300);
            assertEquals(0, broker.rate(1));
            // A fence that fails in the middle of a pause: from then on it is a pause without one.
            broker.fenced(false, false);
            broker.run(60);
            assertTrue(broker.rate(1) <= leakBytes(window, 60, connections, request), "leak: " + broker.rate(1));
        }
    }

    /** The leak of a pause by docs/throttling.md, bytes: S · (3 + (W + ρ · t) / D). */
    static double leakBytes(double window, double pauseSeconds, int connections, double requestBytes) {
        double roundsInOneMute = (1 + Math.sqrt(1 + 4 * 10 / window)) / 2;
        return Math.max(1_048_576, connections * requestBytes) * (3 + (window + roundsInOneMute * pauseSeconds) / 10);
    }

    @ParameterizedTest
    @CsvSource({"11,1,20e6,100e3", "11,20,1e6,16e3", "3,1,20e6,100e3", "3,20,1e6,16e3", "11,20,1e6,1e6", "60,5,4e6,100e3", "11,300,2e3,1e3", "11,60,1e6,16e3", "3,60,1e6,16e3", "3,10,2e6,100e3",
        "11,10,2e6,100e3", "60,60,1e6,16e3", "11,2,50e6,500e3", "3,2,50e6,500e3"})
    @Tag("F27")
    @Tag("F28")
    void pauseLeaksLittleAndEndsSoon(double window, int connections, double rate, double request) {
        try (SimulatedBroker broker = new SimulatedBroker(settings(window))) {
            for (int i = 0; i < connections; i++) {
                broker.connect("app-" + i, rate, request);
            }
            assertPauseLeaksLittleAndEndsSoon(broker, window, connections * rate, request, connections);
        }
    }

    @ParameterizedTest
    @CsvSource({"11,1,20e6,100e3", "11,1,8e6,16e3", "11,5,1.6e6,16e3", "11,20,1e6,16e3", "11,100,0.2e6,16e3"})
    @Tag("F27")
    @Tag("F28")
    void requestsThatGrowWhileTheyWaitLeakNoMoreThanTheirLargestAllows(double window, int connections, double rate, double request) {
        try (SimulatedBroker broker = new SimulatedBroker(settings(window))) {
            for (int i = 0; i < connections; i++) {
                broker.connectGrowing("app-" + i, rate, request, 1_048_576);
            }
            assertPauseLeaksLittleAndEndsSoon(broker, window, connections * rate, 1_048_576, connections);
        }
    }

    /** On a busy machine clients that produce all they can wait for the processor, and bring many requests between two looks. */
    @ParameterizedTest
    @CsvSource({"11,500,16e3", "11,1000,250e3", "11,2000,250e3", "3,1000,16e3", "3,1000,250e3"})
    @Tag("F27")
    void clientsThatComeInBurstsArePausedAsTightlyAsOthers(double window, long turnsMs, double request) {
        int connections = 20;
        try (SimulatedBroker broker = new SimulatedBroker(settings(window))) {
            for (int i = 0; i < connections; i++) {
                broker.connectInTurns("app-" + i, 10 * MB, request, i * turnsMs / connections, turnsMs / connections, turnsMs);
            }
            broker.run(20);
            broker.decide(State.PAUSE, 0);
            broker.run(5);
            double ratio = broker.rate(1) / leakBytes(window, 5, connections, request);
            assertTrue(ratio <= 1, "leak after 5 s: " + ratio + " of the formula");
        }
    }

    /** Kafka's rate of a client whose window is not full yet jumps each second; a pause does not go by it. */
    @ParameterizedTest
    @CsvSource({"11,2", "11,6", "11,20", "3,2", "60,20"})
    @Tag("F27")
    void clientsThatHaveJustComeArePausedAsTightlyAsOthers(double window, double lifeSeconds) {
        for (int connections : new int[] {1, 20}) {
            try (SimulatedBroker broker = new SimulatedBroker(settings(window))) {
                for (int i = 0; i < connections; i++) {
                    broker.connectGrowing("app-" + i, 20 * MB / connections, 16_000, 131_072);
                }
                broker.run(lifeSeconds);
                broker.decide(State.PAUSE, 0);
                broker.run(5);
                double ratio = broker.rate(1) / leakBytes(window, 5, connections, 131_072);
                assertTrue(ratio <= 1, connections + " connections leak " + ratio + " of the formula");
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"11,5,0.5", "11,11,0.5", "11,11,0.3", "3,3,0.5", "3,11,0.3", "60,11,0.5"})
    @Tag("A7")
    void clientsThatHaveJustComeAreThrottledToTheFactor(double window, double lifeSeconds, double factor) {
        int connections = 20;
        double rate = 20 * MB;
        try (SimulatedBroker broker = new SimulatedBroker(settings(window))) {
            for (int i = 0; i < connections; i++) {
                broker.connectGrowing("app-" + i, rate / connections, 16_000, 131_072);
            }
            broker.run(lifeSeconds);
            broker.decide(State.THROTTLE, factor);
            broker.run(2 * window);
            broker.run(12 * window);
            assertEquals(1, broker.rate(12 * window) / (factor * rate), 0.2, "of the target");
            assertTrue(broker.longestMuteSeconds() <= 10 + 1, "mute: " + broker.longestMuteSeconds());
        }
    }

    private static void assertPauseLeaksLittleAndEndsSoon(SimulatedBroker broker, double window, double load, double request, int connections) {
        broker.run(60);
        broker.decide(State.PAUSE, 0);
        // A mute is longer than D by what arrives at once, before the limit follows it.
        double longest = 2 * 10 * Math.max(1, connections * request / 1_048_576);
        double leak = 0;
        double before = 0;
        for (double until : new double[] {3, 11, 30, 120, 600}) {
            broker.run(until - before);
            leak += broker.rate(1);
            double ratio = leak / leakBytes(window, until, connections, request);
            assertTrue(ratio <= 1, "leak after " + until + " s: " + ratio + " of the formula");
            assertTrue(broker.longestMuteSeconds() <= longest, "mute: " + broker.longestMuteSeconds());
            before = until;
        }
        broker.decide(State.OPEN, 1);
        broker.run(25);
        broker.run(10);
        assertTrue(broker.rate(10) >= 0.9 * load);
    }

    @Test
    @Tag("C2")
    void aQuotaBelowTheThrottleStaysAsItIs() {
        try (SimulatedBroker broker = new SimulatedBroker(settings(11))) {
            broker.quota("limited", 0.5 * MB);
            SimulatedBroker.Connection limited = broker.connect("limited", 5 * MB, 20_000);
            broker.connect("app", 20 * MB, 100_000);
            broker.run(60);
            broker.decide(State.THROTTLE, 0.9);
            broker.run(11);
            broker.run(60);
            assertTrue(limited.landed / 60 <= 0.5 * MB * 1.05, "above its own quota: " + limited.landed / 60);
            assertTrue(limited.landed / 60 >= 0.3 * MB, "starved: " + limited.landed / 60);
        }
    }

    @ParameterizedTest
    @CsvSource({"0.3,", "0.1,", "0.3,2e6"})
    @Tag("A7")
    void manySmallClientsAreHeldEachByItsOwnLimit(double factor, Double quota) {
        int clients = 100;
        double rate = 0.1 * MB;
        try (SimulatedBroker broker = new SimulatedBroker(settings(11))) {
            SimulatedBroker.Connection large = broker.connect("large", 10 * MB, 100_000);
            for (int i = 0; i < clients; i++) {
                if (quota != null) {
                    broker.quota("app-" + i, quota);
                }
                broker.connect("app-" + i, rate, 16_000);
            }
            broker.run(60);
            broker.decide(State.THROTTLE, factor);
            broker.run(25);
            broker.run(60);
            double small = broker.rate(60) - large.landed / 60;
            double ratio = small / (factor * clients * rate);
            assertEquals(1, ratio, 0.15, "of their share");
            assertEquals(1, large.landed / 60 / (factor * 10 * MB), 0.15, "and the large one keeps its own");
            assertTrue(broker.longestMuteSeconds() <= 10 + 1, "mute: " + broker.longestMuteSeconds());
            broker.decide(State.OPEN, 1);
            broker.run(15);
            broker.run(10);
            assertEquals(1, broker.rate(10) / (10 * MB + clients * rate), 0.1);
        }
    }

    @Test
    void newcomersShareWhatIsLeftOfTheThrottledTotal() {
        try (SimulatedBroker broker = new SimulatedBroker(settings(11))) {
            SimulatedBroker.Connection leaving = broker.connect("leaving", 10 * MB, 100_000);
            broker.run(60);
            broker.decide(State.THROTTLE, 0.5);
            broker.run(30);
            SimulatedBroker.Connection one = broker.connect("newcomer-1", 10 * MB, 50_000);
            SimulatedBroker.Connection two = broker.connect("newcomer-2", 10 * MB, 50_000);
            broker.run(60);
            double newcomers = (one.landed + two.landed) / 60;
            assertTrue(newcomers > 0.01 * MB, "starved: " + newcomers);
            assertTrue(newcomers < 0.3 * 5 * MB, "more than a small share: " + newcomers);
            assertTrue(leaving.landed / 60 > 0.8 * 5 * MB);
        }
    }

    @Test
    void afterARestartAllAreNewcomersAndShareTheRememberedTotal() {
        StockQuotas quotas = new StockQuotas(StockQuotas.LevelMemory.COUNTED);
        TagSet newcomers = new TagSet(Tags.NEWCOMERS);
        Governor governor = new Governor(settings(11), quotas, new TagSets(quotas, 10), new TagSet(Tags.PAUSED), newcomers,
            tags -> OptionalDouble.empty());
        governor.remember(40 * MB);
        governor.step(State.THROTTLE, 0.5, false, 0.1);
        assertEquals(20 * MB, newcomers.limit(), 0.01 * MB);
    }

    @Test
    void aThrottleBetweenTwoPausesKeepsTheBaselineOfOpen() {
        try (SimulatedBroker broker = new SimulatedBroker(settings(3))) {
            broker.connect("app", 10 * MB, 50_000);
            broker.run(60);
            broker.decide(State.PAUSE, 0);
            broker.run(60);
            broker.decide(State.THROTTLE, 0.5);
            broker.run(20);
            broker.run(30);
            assertEquals(5 * MB, broker.rate(30), 0.6 * MB);
        }
    }

    /** Each rate that is read costs; clients are looked at in turns. */
    @ParameterizedTest
    @CsvSource({"OPEN,1100", "THROTTLE,1100", "PAUSE,1100"})
    void aLookReadsABoundedNumberOfRates(State state, int readsAtMost) {
        int clients = 10_000;
        StockQuotas quotas = new StockQuotas(StockQuotas.LevelMemory.COUNTED);
        TagSets tagSets = new TagSets(quotas, clients);
        for (int i = 0; i < clients; i++) {
            tagSets.of("alice", "app-" + i);
        }
        Map<Map<String, String>, Integer> reads = new HashMap<>();
        Governor governor = new Governor(settings(11), quotas, tagSets, new TagSet(Tags.PAUSED), new TagSet(Tags.NEWCOMERS), tags -> {
            reads.merge(tags, 1, Integer::sum);
            return OptionalDouble.of(10_000);
        });
        for (int look = 0; look < 200; look++) {
            tagSets.all().forEach(tagSet -> tagSet.touch(0));
            governor.step(State.OPEN, 1, false, 0.1);
        }
        governor.step(state, 0.5, false, 0.1);
        governor.step(state, 0.5, false, 0.1);
        reads.clear();
        int before = 0;
        for (int look = 0; look < 22; look++) {
            governor.step(state, 0.5, false, 0.1);
            int total = reads.values().stream().mapToInt(it -> it).sum();
            assertTrue(total - before <= readsAtMost, total - before + " rates in one look");
            before = total;
        }
        assertEquals(clients + 3, reads.size(), "everyone is looked at in two seconds");
    }
}
