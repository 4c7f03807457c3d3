package org.kquota.govern;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.kquota.decision.State;

/** The figures of "What to expect of it" in docs/throttling.md, which it prints. */
@Tag("long")
class GovernorFiguresTest {
    private static final double MB = 1e6;

    private static SimulatedBroker broker(double window, int connections, double rate, double request, double largestRequest) {
        SimulatedBroker broker = new SimulatedBroker(GovernorTest.settings(window));
        for (int i = 0; i < connections; i++) {
            if (largestRequest > request) {
                broker.connectGrowing("app-" + i, rate, request, largestRequest);
            } else {
                broker.connect("app-" + i, rate, request);
            }
        }
        broker.run(60);
        return broker;
    }

    @ParameterizedTest
    @CsvSource({
        "11,1,20e6,100e3,100e3", "3,1,20e6,100e3,100e3", "11,20,1e6,16e3,16e3", "3,20,1e6,16e3,16e3", "11,20,1e6,1e6,1e6", "3,20,1e6,1e6,1e6",
        "11,100,0.2e6,16e3,1048576", "3,100,0.2e6,16e3,1048576"})
    void aPauseLeaks(double window, int connections, double rate, double request, double largestRequest) {
        try (SimulatedBroker broker = broker(window, connections, rate, request, largestRequest)) {
            broker.decide(State.PAUSE, 0);
            double leaked = 0;
            double longest = 0;
            for (double seconds : new double[] {5, 115}) {
                broker.run(seconds);
                leaked += broker.rate(1);
                longest = Math.max(longest, broker.longestMuteSeconds());
                System.out.printf("PAUSE, W = %.0f s, %d of %.1f MB/s, requests of %.0f to %.0f kB, %.0f s: %.1f MB leaked, longest mute %.1f s%n",
                    window, connections, rate / MB, request / 1e3, largestRequest / 1e3, seconds == 5 ? 5.0 : 120.0, leaked / MB, longest);
            }
            assertTrue(leaked <= GovernorTest.leakBytes(window, 120, connections, largestRequest), "leaked " + leaked);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "11,1,20e6,100e3,100e3,0.3", "3,1,20e6,100e3,100e3,0.3", "11,20,1e6,16e3,16e3,0.3", "3,20,1e6,16e3,16e3,0.3", "11,100,0.1e6,16e3,16e3,0.05", "3,100,0.1e6,16e3,16e3,0.05",
        "11,20,1e6,16e3,1048576,0.3", "3,20,1e6,16e3,1048576,0.3", "11,20,1e6,16e3,1048576,0.05", "3,20,1e6,16e3,1048576,0.05", "11,20,0.05e6,16e3,1048576,0.3", "3,20,0.05e6,16e3,1048576,0.3",
        "11,20,0.05e6,16e3,1048576,0.05", "3,20,0.05e6,16e3,1048576,0.05"})
    void aThrottleComesTo(double window, int connections, double rate, double request, double largestRequest, double factor) {
        try (SimulatedBroker broker = broker(window, connections, rate, request, largestRequest)) {
            broker.decide(State.THROTTLE, factor);
            broker.run(120);
            double ratio = broker.rate(120) / (factor * connections * rate);
            System.out.printf("THROTTLE to %.2f, W = %.0f s, %d of %.2f MB/s, requests of %.0f to %.0f kB: %.2f of the target, longest mute %.1f s%n",
                factor, window, connections, rate / MB, request / 1e3, largestRequest / 1e3, ratio, broker.longestMuteSeconds());
            double largestAloneSeconds = largestRequest / (factor * rate);
            assertTrue(broker.longestMuteSeconds() <= 2 * Math.max(5, largestAloneSeconds), "mute: " + broker.longestMuteSeconds());
        }
    }
}
