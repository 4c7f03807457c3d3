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
        return new GovernorSettings(windowSeconds, 1, 5, 10, 1_048_576, 0.01, 10, 1_048_576, 0.05);
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
            broker.run(window);
            assertTrue(broker.longestMuteSeconds() <= 5 + 1, "at first: " + broker.longestMuteSeconds());
            broker.run(60);
            assertTrue(broker.longestMuteSeconds() <= 5 + 1, "then: " + broker.longestMuteSeconds());
            assertEquals(factor * rate, broker.rate(60), 0.1 * factor * rate);
            broker.decide(State.OPEN, 1);
            broker.run(7);
            broker.run(10);
            assertEquals(rate, broker.rate(10), 0.05 * rate);
        }
    }

    /** A fence lets nothing in but what was under way: that must not mute for longer than at the beginning of any pause. */
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
            assertTrue(broker.longestMuteSeconds() <= 1 + 1, "mute of requests under way: " + broker.longestMuteSeconds());
            broker.fenced(true, true);
            broker.run(300);
            assertEquals(0, broker.rate(1));
            // A fence that fails in the middle of a pause: from then on it is a pause without one.
            broker.fenced(false, false);
            broker.run(60);
            double together = Math.max(1_048_576, connections * request);
            assertTrue(broker.rate(1) <= 2 * connections * rate + 2 * together * (2 + 2 * Math.log(30)), "leak: " + broker.rate(1));
            assertTrue(broker.longestMuteSeconds() <= 10 + 1, "mute: " + broker.longestMuteSeconds());
        }
    }

    /**
     * The leak of a pause: one request of each connection for each mute D, and D is half of the pause's length until then, 1 to
     * 10 s; together at least a MiB, and a MiB more where the shared pool begins. Bytes.
     */
    private static double leakBytes(double pauseSeconds, int connections, double requestBytes) {
        double together = Math.max(1_048_576, connections * requestBytes);
        double times = 2 + 2 * Math.log(Math.max(1, Math.min(pauseSeconds, 20) / 2)) + Math.max(0, pauseSeconds - 20) / 10;
        return together * times + 1_048_576;
    }

    @ParameterizedTest
    @CsvSource({"11,1,20e6,100e3", "11,20,1e6,16e3", "3,1,20e6,100e3", "3,20,1e6,16e3", "11,20,1e6,1e6", "60,5,4e6,100e3", "11,300,2e3,1e3"})
    @Tag("F27")
    @Tag("F28")
    void pauseLeaksLittleAndEndsSoon(double window, int connections, double rate, double request) {
        try (SimulatedBroker broker = new SimulatedBroker(settings(window))) {
            for (int i = 0; i < connections; i++) {
                broker.connect("app-" + i, rate, request);
            }
            assertPauseLeaksLittleAndEndsSoon(broker, connections * rate, request, connections);
        }
    }

    @ParameterizedTest
    @CsvSource({"11,1,20e6,100e3", "11,1,8e6,16e3", "11,5,1.6e6,16e3", "11,20,1e6,16e3", "11,100,0.2e6,16e3"})
    @Tag("F27")
    @Tag("F28")
    void requestsThatGrowWhileTheyWaitMakeNoMuteRunAway(double window, int connections, double rate, double request) {
        try (SimulatedBroker broker = new SimulatedBroker(settings(window))) {
            for (int i = 0; i < connections; i++) {
                broker.connectGrowing("app-" + i, rate, request, 1_048_576);
            }
            assertPauseLeaksLittleAndEndsSoon(broker, connections * rate, 1_048_576, connections);
        }
    }

    @ParameterizedTest
    @CsvSource({"11,1,20e6,100e3", "11,20,1e6,16e3", "3,1,20e6,100e3", "60,5,4e6,100e3"})
    @Tag("F27")
    void aLookThatCameLateBeforeAPauseDoesNotLoosenIt(double window, int connections, double rate, double request) {
        try (SimulatedBroker broker = new SimulatedBroker(settings(window))) {
            for (int i = 0; i < connections; i++) {
                broker.connect("app-" + i, rate, request);
            }
            broker.run(230);
            broker.looksLate(3);
            broker.run(9);
            assertPauseLeaksLittleAndEndsSoon(broker, connections * rate, request, connections);
        }
    }

    /** On a busy machine clients that produce all they can wait for the processor, and bring many requests between two looks. */
    @ParameterizedTest
    @CsvSource({"11,500,16e3", "11,1000,16e3", "11,1000,250e3", "11,2000,250e3", "3,1000,16e3", "3,1000,250e3", "3,2000,16e3"})
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
            double ratio = broker.rate(1) / leakBytes(5, connections, request);
            assertTrue(ratio <= 2, "leak after 5 s: " + ratio + " of the formula");
            assertTrue(broker.longestMuteSeconds() <= 1.3 * 2.5 + 1, "mute: " + broker.longestMuteSeconds());
            broker.run(15);
            assertTrue(broker.longestMuteSeconds() <= 1.3 * 10 + 1, "mute: " + broker.longestMuteSeconds());
        }
    }

    /** Many connections of one client that send at the same moment, and are silent in between: what came once may come again. */
    @ParameterizedTest
    @CsvSource({"11,20,1e6,1000", "11,100,100e3,5000", "3,20,100e3,5000", "3,100,1e6,5000"})
    @Tag("F28")
    void connectionsThatSendTogetherAreNotMutedForLongerThanTheLongestMute(double window, int connections, double request, long turnsMs) {
        try (SimulatedBroker broker = new SimulatedBroker(settings(window))) {
            for (int i = 0; i < connections; i++) {
                broker.connectInTurns("app", 2 * request / (turnsMs / 1e3), request, 0, 20, turnsMs);
            }
            broker.run(25);
            broker.decide(State.PAUSE, 0);
            for (int i = 0; i < 6; i++) {
                broker.run(5);
                assertTrue(broker.longestMuteSeconds() <= 1.3 * 10 + 1, "mute: " + broker.longestMuteSeconds());
            }
        }
    }

    /** Kafka's rate of a client whose window is not full yet jumps each second, and is below what the client produces. */
    @ParameterizedTest
    @CsvSource({"11,2", "11,6", "11,12", "11,20", "3,2", "3,4", "60,20"})
    @Tag("F27")
    void clientsThatHaveJustComeArePausedAsTightlyAsOthers(double window, double lifeSeconds) {
        for (int connections : new int[] {1, 20}) {
            double others = leakOfFiveSecondsBytes(window, connections, 240);
            double young = leakOfFiveSecondsBytes(window, connections, lifeSeconds);
            assertTrue(young <= 1.5 * others + 1_048_576, connections + " connections leak " + young + ", others " + others);
        }
    }

    private static double leakOfFiveSecondsBytes(double window, int connections, double lifeSeconds) {
        try (SimulatedBroker broker = new SimulatedBroker(settings(window))) {
            for (int i = 0; i < connections; i++) {
                broker.connectGrowing("app-" + i, 20 * MB / connections, 16_000, 131_072);
            }
            broker.run(lifeSeconds);
            broker.decide(State.PAUSE, 0);
            broker.run(5);
            assertTrue(broker.longestMuteSeconds() <= 1.3 * 2.5 + 1, "mute: " + broker.longestMuteSeconds());
            return broker.rate(1);
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
            broker.run(5);
            broker.run(11);
            assertEquals(1, broker.rate(11) / (factor * rate), 0.2, "of the target");
            assertTrue(broker.longestMuteSeconds() <= 1.6, "mute: " + broker.longestMuteSeconds());
        }
    }

    static void assertPauseLeaksLittleAndEndsSoon(SimulatedBroker broker, double load, double request, int connections) {
        // Until a window is full for the first time, Kafka's rates jump by a sample each second.
        broker.run(Math.max(0.1, 240 - broker.seconds()));
        broker.decide(State.PAUSE, 0);
        double leak = 0;
        double before = 0;
        for (double until : new double[] {3, 11, 30, 120}) {
            broker.run(until - before);
            leak += broker.rate(1);
            double ratio = leak / leakBytes(until, connections, request);
            assertTrue(ratio <= 2, "leak after " + until + " s: " + ratio + " of the formula");
            double longest = 1.3 * Math.min(Math.max(until / 2, 1), 10) + 1;
            assertTrue(broker.longestMuteSeconds() <= longest, "mute: " + broker.longestMuteSeconds());
            before = until;
        }
        broker.decide(State.OPEN, 1);
        broker.run(15);
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

    /** Each alone has so small a share that no limit of its own would hold it without muting for long. */
    @ParameterizedTest
    @CsvSource({"0.3,", "0.1,", "0.3,2e6"})
    @Tag("A7")
    void manySmallClientsAreHeldTogether(double factor, Double quota) {
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
            broker.run(11);
            broker.run(60);
            double small = broker.rate(60) - large.landed / 60;
            double ratio = small / (factor * clients * rate);
            assertTrue(ratio > 0.6 && ratio < 2, "of their share: " + ratio);
            assertEquals(1, large.landed / 60 / (factor * 10 * MB), 0.15, "and the large one keeps its own");
            assertTrue(broker.longestMuteSeconds() <= 5 + 1, "mute: " + broker.longestMuteSeconds());
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

    /** Each rate that is read costs; whose limit does not depend on it now is looked at in turns. */
    @ParameterizedTest
    @CsvSource({"OPEN,1100", "THROTTLE,1200", "PAUSE,1200"})
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
