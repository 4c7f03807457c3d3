package org.kquota.govern;

import org.kquota.quota.Quotas;

import java.util.Comparator;
import java.util.List;

/** PAUSE: clients are held by their earlier bytes while those are in the window, and share one pool from then on. */
final class PauseStrategy implements HoldingStrategy {
    /** This many clients at most keep their own tags when a pause begins: Kafka looks at each limit that changes. */
    private static final int MAX_APART = 100;

    private final Observations seen;
    private final Limits limits;
    private final FactorHistory history;
    private final Quotas quotas;
    /** The most that those who are in the pool from the beginning brought between two looks before it. */
    private double poolBurst;
    /** How long this pause has lasted without a fence. */
    private double unfencedSeconds;

    PauseStrategy(Observations seen, Limits limits, FactorHistory history, Quotas quotas) {
        this.seen = seen;
        this.limits = limits;
        this.history = history;
        this.quotas = quotas;
    }

    @Override
    public void enter() {
        unfencedSeconds = 0;
        seen.meters().stream().forEach(Meter::pauseBegins);
        seen.alone(withHistory());
        seen.alone().forEach(meter -> holdApart(meter, true));
        List<Meter> pooled = seen.meters().stream().filter(meter -> !meter.isAlone()).toList();
        poolBurst = Math.min(seen.arrivals().get(), pooled.stream().mapToDouble(Meter::burstBytes).sum());
        seen.arrivals().restart(pooled.stream().mapToDouble(Meter::arrivalBytes).sum());
    }

    /** Those that have produced enough to be muted exactly from the first request on, the largest first. */
    private List<Meter> withHistory() {
        return seen.meters().stream().filter(this::isMutedExactly).sorted(Comparator.comparingDouble(Meter::observed).reversed())
            .limit(MAX_APART).toList();
    }

    @Override
    public void leave() {
        seen.alone().forEach(meter -> holdApart(meter, false));
    }

    @Override
    public Double step(double factor, boolean fenced, double seconds) {
        history.add(0, seconds);
        // Behind a fence only what was under way when the pause began is left to mute: as briefly as at the beginning of
        // any pause, so that nothing is left of it at the end. A fence that fails begins the pause again.
        unfencedSeconds = fenced ? 0 : unfencedSeconds + seconds;
        holdApart();
        // Whichever clients are in the pool next, no more arrives there than from all clients together.
        Meter pool = seen.paused();
        double arrivalBytes = Math.max(pool.arrivalBytes(), seen.arrivals().get());
        limits.set(pool.tagSet(), GovernorLaw.limit(0, pool.observed(), seen.settings().windowSeconds(), bounds(arrivalBytes, poolBurst)), changeMinRatio());
        return muteSeconds();
    }

    /**
     * The pool is empty when a pause begins, and so cannot mute until much has landed in it. A client with a history of its
     * own is held by it, until it has left the window.
     */
    private void holdApart() {
        List<Meter> before = seen.alone();
        seen.alone(before.stream().filter(meter -> {
            boolean still = isMutedExactly(meter);
            if (still) {
                double limit = GovernorLaw.limit(0, meter.observed(), seen.settings().windowSeconds(), bounds(meter));
                Double quota = quotas.limit(meter.tagSet().tags());
                limits.set(meter.tagSet(), quota == null ? limit : Math.min(limit, quota), changeMinRatio());
            }
            holdApart(meter, still);
            return still;
        }).toList());
        // A client that goes into the pool now brings a request there, perhaps all of them at once.
        seen.arrivals().add(before.stream().filter(meter -> !meter.isAlone()).mapToDouble(Meter::requestBytes).sum(), 0, arrivalsRememberedSeconds());
    }

    private static void holdApart(Meter meter, boolean apart) {
        meter.alone(apart);
        meter.tagSet().heldApart(apart);
    }

    private boolean isMutedExactly(Meter meter) {
        double windowSeconds = seen.settings().windowSeconds();
        return bounds(meter).areExact(meter.observed() * windowSeconds, windowSeconds);
    }

    /**
     * A client with a history of its own is muted in any case, by half of D at least: were more expected of it than it produces in
     * that time, nothing would hold it at all. More than that is a surprise.
     */
    private GovernorLaw.Bounds bounds(Meter meter) {
        double expectedBytes = Math.min(meter.arrivalBytes(), muteSeconds() / 2 * meter.observed());
        return bounds(expectedBytes, Math.max(meter.arrivalBytes(), meter.burstBytes()));
    }

    private GovernorLaw.Bounds bounds(double arrivalBytes, double burstBytes) {
        GovernorSettings settings = seen.settings();
        return new GovernorLaw.Bounds(arrivalBytes, muteSeconds(), Math.max(settings.arrivalMinBytes(), burstBytes), settings.pauseMuteMaxSeconds());
    }

    private double muteSeconds() {
        return GovernorLaw.pauseMuteSeconds(unfencedSeconds, seen.settings().muteMinSeconds(), seen.settings().pauseMuteMaxSeconds());
    }

    /** Kafka logs each change, on disks that are nearly full: those that move a mute by less than a tenth of D can be spared. */
    private double changeMinRatio() {
        double muteSeconds = muteSeconds();
        return Math.max(seen.settings().limitChangeMinRatio(), 0.1 * muteSeconds / (seen.settings().windowSeconds() + muteSeconds));
    }

    @Override
    public int looksOfAll(int meters) {
        return ThrottleStrategy.LOOKS_OF_THE_REST;
    }

    @Override
    public boolean metersByOwnTags() {
        return false;
    }

    /** A client that is muted for D comes back once each D, so the last 2·D show all of them. */
    @Override
    public double arrivalsRememberedSeconds() {
        return 2 * muteSeconds();
    }
}
