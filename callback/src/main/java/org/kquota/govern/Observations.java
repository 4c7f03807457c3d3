package org.kquota.govern;

import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;

import java.util.List;
import java.util.Queue;
import java.util.stream.Stream;

/**
 * The governor's view of the broker's producers: in each look the pools and those that are held alone, of the others those whose turn it is. Used by one
 * thread.
 */
final class Observations {
    private final ProduceRates rates;
    private final Meters meters = new Meters();
    private final Queue<TagSet> made;
    private final Meter paused;
    private final Meter newcomers;
    /** The arrivals from all of them together, which the pool of a pause has to expect. */
    private final RecentMaximum arrivals = new RecentMaximum();
    private GovernorSettings settings;
    private List<Meter> alone = List.of();
    private double nowSeconds;
    private double lastSeconds;
    private double observedTotal;
    private double baselineKnown;
    private boolean byTopic;

    Observations(GovernorSettings settings, TagSets tagSets, TagSet paused, TagSet newcomers, ProduceRates rates) {
        this.settings = settings;
        this.rates = rates;
        this.paused = meter(paused, true);
        this.newcomers = meter(newcomers, true);
        this.meters.add(meter(tagSets.overflow(), true));
        this.made = tagSets.watch();
    }

    private Meter meter(TagSet tagSet, boolean isPool) {
        return new Meter(tagSet, rates.of(tagSet.tags()), lastSeconds, settings.windowSeconds(), settings.arrivalMinBytes(), isPool);
    }

    /** Whether topics have factors of their own from now on. */
    void byTopic(boolean have) {
        byTopic = have;
    }

    boolean isByTopic() {
        return byTopic;
    }

    void look(HoldingStrategy strategy, double seconds) {
        lastSeconds = nowSeconds;
        nowSeconds += seconds;
        for (TagSet tagSet = made.poll(); tagSet != null; tagSet = made.poll()) {
            Meter meter = meter(tagSet, false);
            meters.add(meter);
            strategy.added(meter);
        }
        double rememberedSeconds = strategy.arrivalsRememberedSeconds();
        double arrived = observe(paused, true, rememberedSeconds) + observe(newcomers, true, rememberedSeconds);
        for (Meter meter : alone) {
            arrived += observe(meter, true, rememberedSeconds);
            meters.keep(meter);
        }
        int turn = meters.turn(strategy.looksOfAll(meters.size()));
        double arrivedInTurn = 0;
        for (int i = 0; i < turn; i++) {
            Meter meter = meters.next();
            if (meter != null && !meter.isAlone()) {
                strategy.beforeTurn(meter);
                arrivedInTurn += observe(meter, strategy.metersByOwnTags(), rememberedSeconds);
                meters.keep(meter);
            }
        }
        observedTotal = paused.observed() + newcomers.observed() + meters.observed();
        // Those whose turn it is stand for all.
        arrivals.add(arrived + arrivedInTurn * meters.size() / turn, seconds, rememberedSeconds);
    }

    private double observe(Meter meter, boolean usesItsTags, double rememberedSeconds) {
        if (meter.isQuiet()) {
            meter.pass(nowSeconds);
            return 0;
        }
        return meter.observe(nowSeconds, usesItsTags, rememberedSeconds);
    }

    GovernorSettings settings() {
        return settings;
    }

    void settings(GovernorSettings next) {
        settings = next;
        Stream.concat(Stream.of(paused, newcomers), meters.stream()).forEach(meter -> meter.requestMaxBytes(next.arrivalMinBytes()));
    }

    Meters meters() {
        return meters;
    }

    /** The pool that all clients share in PAUSE. */
    Meter paused() {
        return paused;
    }

    /** The pool that clients without a baseline share in THROTTLE. */
    Meter newcomers() {
        return newcomers;
    }

    RecentMaximum arrivals() {
        return arrivals;
    }

    /** Those whose own rate decides on their limit now: in THROTTLE by their share, in PAUSE by their earlier rate. */
    List<Meter> alone() {
        return alone;
    }

    void alone(List<Meter> those) {
        alone = those;
    }

    /** When the look before this one was, seconds since the first. */
    double lastSeconds() {
        return lastSeconds;
    }

    /** Total rate of all producers, each at its last look, bytes per second. */
    double observedTotal() {
        return observedTotal;
    }

    /** All of them are known to have produced this much before OPEN was left, bytes per second. */
    void baselineKnown(double bytesPerSecond) {
        baselineKnown = bytesPerSecond;
    }

    /** The assumed total rate of all of them before OPEN was left, bytes per second. */
    double baselineTotal() {
        return Math.max(baselineKnown, settings.baselineMinBytes());
    }
}
