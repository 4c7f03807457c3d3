package org.kquota.govern;

import org.kquota.quota.TagSet;

/** OPEN: no client is held, and the governor learns each client's rate as its baseline. */
final class OpenStrategy implements HoldingStrategy {
    /** A client that produced less than this had nothing to throttle: it counts as a newcomer. Bytes per second. */
    private static final double BASELINE_FROM = 1024;
    /** For this long after the start, what the broker took in before its restart counts too. */
    private static final double REMEMBERED_SECONDS = 60;
    /** This many clients at most are looked at in one look: each rate costs half a microsecond. */
    static final int READ_MAX = 1000;

    private final Observations seen;
    private final Limits limits;
    private final FactorHistory history;
    private double rememberedTotal;
    private double openSeconds;

    OpenStrategy(Observations seen, Limits limits, FactorHistory history) {
        this.seen = seen;
        this.limits = limits;
        this.history = history;
    }

    /** Remembers what all producers produced before the broker's restart, bytes per second. */
    void remember(double total) {
        rememberedTotal = total;
    }

    @Override
    public void enter() {
        openSeconds = 0;
        history.clear();
        seen.meters().stream().forEach(this::free);
    }

    private void free(Meter meter) {
        meter.learnsFrom(seen.lastSeconds());
        limits.set(meter.tagSet(), TagSet.NO_LIMIT, seen.settings().limitChangeMinRatio());
    }

    @Override
    public Double step(double factor, boolean fenced, double seconds) {
        openSeconds += seconds;
        return null;
    }

    @Override
    public void leave() {
        seen.meters().stream().forEach(this::freeze);
        seen.baselineKnown(Math.max(seen.meters().baselines(), seen.lastSeconds() < REMEMBERED_SECONDS ? rememberedTotal : 0));
    }

    private void freeze(Meter meter) {
        learn(meter);
        meter.freeze();
        seen.meters().keep(meter);
        meter.tagSet().hasBaseline(meter.baseline() >= BASELINE_FROM);
        meter.tagSet().pooled(false);
    }

    @Override
    public void beforeTurn(Meter meter) {
        learn(meter);
    }

    /** Until the last look, what was seen of it before held. */
    private void learn(Meter meter) {
        boolean rateIsOurDoing = openSeconds < seen.settings().windowSeconds();
        meter.learn(seen.lastSeconds(), seen.settings().baselineSeconds(), rateIsOurDoing && meter.tagSet().hasBaseline());
    }

    @Override
    public int looksOfAll(int meters) {
        return meters / READ_MAX + 1;
    }

    @Override
    public boolean metersByOwnTags() {
        return true;
    }

    /** Without mutes bursts may be rare. */
    @Override
    public double arrivalsRememberedSeconds() {
        return 2 * seen.settings().windowSeconds();
    }
}
