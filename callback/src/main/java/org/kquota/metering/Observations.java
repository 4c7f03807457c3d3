package org.kquota.metering;

import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.Stream;

/** The rates of the broker's producers: in each look the pools, and of the others those whose turn it is. Used by one thread. */
public final class Observations {
    /** This many clients at most are looked at in one look: each rate costs half a microsecond. */
    static final int READ_MAX = 1000;

    private final ProduceRates rates;
    private final double windowSeconds;
    private final Meters meters = new Meters();
    private final Queue<TagSet> made;
    private final Meter paused;
    private final Meter newcomers;
    private double requestMaxBytes;
    private double nowSeconds;
    private double lastSeconds;
    private double observedTotal;

    /**
     * @param windowSeconds   W
     * @param requestMaxBytes the most that one request brings, as a rule
     * @param paused          the pool that all clients share in PAUSE
     * @param newcomers       the pool that clients without a baseline share in THROTTLE
     */
    public Observations(double windowSeconds, double requestMaxBytes, TagSets tagSets, TagSet paused, TagSet newcomers, ProduceRates rates) {
        this.windowSeconds = windowSeconds;
        this.requestMaxBytes = requestMaxBytes;
        this.rates = rates;
        this.paused = meter(paused, true);
        this.newcomers = meter(newcomers, true);
        this.meters.add(meter(tagSets.overflow(), true));
        this.made = tagSets.watch();
    }

    private Meter meter(TagSet tagSet, boolean isPool) {
        return new Meter(tagSet, rates.of(tagSet.tags()), lastSeconds, windowSeconds, requestMaxBytes, isPool);
    }

    /** The most that one request brings, as a rule, from now on. */
    public void requestMaxBytes(double bytes) {
        requestMaxBytes = bytes;
        Stream.concat(Stream.of(paused, newcomers), meters.stream()).forEach(meter -> meter.requestMaxBytes(bytes));
    }

    /**
     * Takes a look, and returns those that it was the turn of, and those that are new.
     *
     * @param seconds     time since the last look
     * @param usesItsTags whether requests are metered by the tags of this client now
     * @param beforeTurn  called while what a meter saw last is still there
     */
    public List<Meter> look(double seconds, Predicate<TagSet> usesItsTags, Consumer<Meter> beforeTurn) {
        lastSeconds = nowSeconds;
        nowSeconds += seconds;
        List<Meter> looked = new ArrayList<>();
        for (TagSet tagSet = made.poll(); tagSet != null; tagSet = made.poll()) {
            Meter meter = meter(tagSet, false);
            meters.add(meter);
            looked.add(meter);
        }
        paused.observe(nowSeconds, true);
        newcomers.observe(nowSeconds, true);
        int turn = meters.turn(meters.size() / READ_MAX + 1);
        for (int i = 0; i < turn; i++) {
            Meter meter = meters.next();
            if (meter != null) {
                beforeTurn.accept(meter);
                observe(meter, usesItsTags.test(meter.tagSet()));
                meters.keep(meter);
                looked.add(meter);
            }
        }
        observedTotal = paused.observed() + newcomers.observed() + meters.observed();
        return looked;
    }

    private void observe(Meter meter, boolean usesItsTags) {
        if (meter.isQuiet()) {
            meter.pass(nowSeconds);
        } else {
            meter.observe(nowSeconds, usesItsTags);
        }
    }

    public Meters meters() {
        return meters;
    }

    /** The pool that all clients share in PAUSE. */
    public Meter paused() {
        return paused;
    }

    /** The pool that clients without a baseline share in THROTTLE. */
    public Meter newcomers() {
        return newcomers;
    }

    /** When the look before this one was, seconds since the first. */
    public double lastSeconds() {
        return lastSeconds;
    }

    /** Total rate of all producers, each at its last look, bytes per second. */
    public double observedTotal() {
        return observedTotal;
    }
}
