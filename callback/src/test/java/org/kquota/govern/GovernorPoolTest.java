package org.kquota.govern;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.kquota.decision.State;

/** The pool in which those are held together in THROTTLE whose share is too small for a limit of their own, and the tag set of those who found no room. */
class GovernorPoolTest {
    /** Requests that grow while a client waits bring more in each round of mutes, so mutes have to be longer. */
    @ParameterizedTest
    @CsvSource({"3,16e3,131072", "11,16e3,131072", "3,16e3,40e3", "3,16e3,16e3", "11,16e3,16e3", "3,10e3,65536", "11,10e3,65536"})
    @Tag("A7")
    void itComesToTheFactorHoweverLargeItsRequestsGrow(double window, double request, double largestRequest) {
        int connections = 20;
        double rate = 20 * 1e6;
        try (SimulatedBroker broker = new SimulatedBroker(new GovernorSettings(window, 1, 5, 10, 1_048_576, 0.01, 10, 1_048_576, 0.05))) {
            for (int i = 0; i < connections; i++) {
                broker.connectGrowing("app-" + i, rate / connections, request, largestRequest);
            }
            broker.run(13);
            broker.decide(State.THROTTLE, 0.3);
            broker.run(16);
            broker.decide(State.THROTTLE, 0.05);
            broker.run(Math.max(5, window));
            broker.run(22);
            assertEquals(1, broker.rate(22) / (0.05 * rate), 0.2, "of the target");
            assertTrue(broker.longestMuteSeconds() <= 5 + 1, "mute: " + broker.longestMuteSeconds());
        }
    }

    /** Beyond the bound of tag sets clients share one, and are governed as one client. */
    @ParameterizedTest
    @CsvSource({"11,1e6,16e3", "3,1e6,16e3", "11,1e6,1e6"})
    @Tag("F27")
    void whoSharesATagSetForWantOfRoomIsPausedAsTightlyAsOthers(double window, double rate, double request) {
        int connections = 30;
        try (SimulatedBroker broker = new SimulatedBroker(GovernorTest.settings(window), 10)) {
            for (int i = 0; i < connections; i++) {
                broker.connect("app-" + i, rate, request);
            }
            GovernorTest.assertPauseLeaksLittleAndEndsSoon(broker, connections * rate, request, connections);
        }
    }
}
