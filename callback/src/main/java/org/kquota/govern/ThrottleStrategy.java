package org.kquota.govern;

import org.kquota.quota.Quotas;
import org.kquota.quota.TagSet;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Stream;

/** THROTTLE by delays: each client with a baseline large enough is held by a limit of its own, all the others share the pool of newcomers. */
final class ThrottleStrategy implements HoldingStrategy {
    /** Those whose rate decides on no limit are looked at once in this many looks. */
    static final int LOOKS_OF_THE_REST = 10;

    private final Observations seen;
    private final Limits limits;
    private final FactorHistory history;
    private final Quotas quotas;
    private final MuteRounds rounds;
    /** Of whom it has to be found out in this look whether they are to be held alone. */
    private final List<Meter> candidates = new ArrayList<>();
    /** Earlier total rate of the clients that were put into the pool, bytes per second. */
    private double pooledBaseline;

    ThrottleStrategy(Observations seen, Limits limits, FactorHistory history, Quotas quotas) {
        this.seen = seen;
        this.limits = limits;
        this.history = history;
        this.quotas = quotas;
        this.rounds = new MuteRounds(seen.settings().windowSeconds());
    }

    @Override
    public void enter() {
        rounds.clear();
        candidates.clear();
        pooledBaseline = seen.meters().stream().filter(meter -> meter.tagSet().pooled()).mapToDouble(Meter::baseline).sum();
        seen.meters().stream().filter(meter -> !meter.tagSet().pooled()).forEach(candidates::add);
    }

    @Override
    public void added(Meter meter) {
        candidates.add(meter);
    }

    @Override
    public void beforeTurn(Meter meter) {
        if (!meter.tagSet().pooled()) {
            candidates.add(meter);
        }
    }

    @Override
    public Double step(double factor, boolean fenced, double seconds) {
        history.add(factor, seconds);
        // A new client may be here twice, because it was its turn, too.
        List<Meter> those = Stream.concat(seen.alone().stream(), candidates.stream()).distinct().toList();
        seen.alone(those.stream().filter(meter -> holdAlone(meter, factor)).toList());
        candidates.clear();
        return holdPool(factor, seconds);
    }

    private double holdPool(double factor, double seconds) {
        GovernorSettings settings = seen.settings();
        Meter pool = seen.newcomers();
        double observedApart = seen.alone().stream().filter(meter -> meter.tagSet().hasBaseline()).mapToDouble(Meter::observed).sum();
        double target = GovernorLaw.poolTarget(factor, seen.baselineTotal(), observedApart, pooledBaseline, settings.newcomersMinRatio());
        GovernorLaw.Bounds bounds = bounds(pool, rounds.bytes(), target);
        double below = GovernorLaw.limitForMutes(target, rounds.bytes(), settings.windowSeconds(), settings.throttleMuteMaxSeconds());
        set(pool.tagSet(), GovernorLaw.limit(below, pool.observed(), settings.windowSeconds(), bounds));
        rounds.add(pool.observed(), pool.tagSet().limit(), seconds);
        return bounds.muteSeconds();
    }

    /** Sets the limit of its own that a client has; returns whether it has one, and is not in the pool. */
    private boolean holdAlone(Meter meter, double factor) {
        TagSet tagSet = meter.tagSet();
        if (tagSet.forgotten()) {
            meter.alone(false);
            return false;
        }
        Double quota = quotas.limit(tagSet.tags());
        boolean pooled = tagSet.hasBaseline() && isTooSmallAlone(factor, meter.baseline(), quota);
        if (pooled) {
            tagSet.pooled(true);
            pooledBaseline += meter.baseline();
        } else if (tagSet.hasBaseline()) {
            govern(meter, factor, meter.baseline(), quota, meter.leftOfBefore(history));
        } else if (quota != null) {
            // A newcomer with a quota keeps its own tags, or its quota would not hold.
            double unscaled = Math.min(quota, seen.baselineTotal());
            govern(meter, factor, unscaled, quota, factor * unscaled * history.shareBefore(seen.settings().windowSeconds()));
        }
        meter.alone(!pooled && (tagSet.hasBaseline() || quota != null));
        return meter.isAlone();
    }

    /**
     * No limit of its own is ever below the one that keeps the mute after a surprise bounded. A client whose share is less than
     * that would not be held at all, and a thousand of them are a full load; together they can be held. A quota that small
     * has to stay a quota of its own.
     */
    private boolean isTooSmallAlone(double factor, double baseline, Double quota) {
        double smallestLimit = seen.settings().arrivalMinBytes() / seen.settings().throttleMuteMaxSeconds();
        return factor * baseline < smallestLimit && (quota == null || quota >= smallestLimit);
    }

    private void govern(Meter meter, double factor, double unscaled, Double quota, double leftOfBefore) {
        double bound = quota == null ? Double.POSITIVE_INFINITY : quota;
        double target = GovernorLaw.target(factor, unscaled, bound);
        double average = leftOfBefore + history.weightedFactor() * Math.min(unscaled, bound);
        double limit = GovernorLaw.limit(average, meter.observed(), seen.settings().windowSeconds(), bounds(meter, 0, target));
        // The quota itself is the operator's and mutes as in any broker: a throttle never gives more than that.
        set(meter.tagSet(), Math.min(limit, bound));
    }

    private GovernorLaw.Bounds bounds(Meter meter, double roundBytes, double target) {
        GovernorSettings settings = seen.settings();
        double longest = settings.throttleMuteMaxSeconds();
        double muteSeconds = GovernorLaw.throttleMuteSeconds(meter.arrivalBytes(), roundBytes, target, settings.muteMinSeconds(), longest);
        return new GovernorLaw.Bounds(meter.arrivalBytes(), muteSeconds, settings.arrivalMinBytes(), longest);
    }

    private void set(TagSet tagSet, double limit) {
        limits.set(tagSet, limit, seen.settings().limitChangeMinRatio());
    }

    @Override
    public int looksOfAll(int meters) {
        return LOOKS_OF_THE_REST;
    }

    @Override
    public boolean metersByOwnTags() {
        return false;
    }

    @Override
    public double arrivalsRememberedSeconds() {
        return 2 * seen.settings().windowSeconds();
    }
}
