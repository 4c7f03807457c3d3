package org.kquota.govern;

import org.kquota.admission.Target;
import org.kquota.quota.Quotas;
import org.kquota.quota.TagSet;

/**
 * THROTTLE behind a fence: requests are admitted one by one. This sets the weight of each client's share, and no limit.
 */
final class AdmissionStrategy implements HoldingStrategy {
    private final Observations seen;
    private final Limits limits;
    private final Quotas quotas;
    /** The rates that clients had before, or their quotas where these are less, together, bytes per second. */
    private double known;

    AdmissionStrategy(Observations seen, Limits limits, Quotas quotas) {
        this.seen = seen;
        this.limits = limits;
        this.quotas = quotas;
    }

    @Override
    public void enter() {
        known = 0;
        seen.meters().stream().forEach(meter -> {
            meter.tagSet().share().know(0, 0);
            weigh(meter);
            limits.set(meter.tagSet(), TagSet.NO_LIMIT, seen.settings().limitChangeMinRatio());
        });
    }

    private void weigh(Meter meter) {
        TagSet tagSet = meter.tagSet();
        double weight = tagSet.hasBaseline() ? meter.baseline() : 0;
        Double quota = weight > 0 ? quotas.limit(tagSet.tags()) : null;
        double bounded = quota == null ? weight : Math.min(weight, quota);
        known += bounded - tagSet.share().weight();
        tagSet.share().know(bounded, meter.requestBytesLately());
        double arrived = meter.takeArrived();
        // By topic, requests to topics that are not held bring bytes, too, and are charged nothing.
        tagSet.share().arrived(seen.isByTopic() ? 0 : arrived);
    }

    /** The target of all together. */
    Target target(double factor, double landedRatio, double exemptRate) {
        return new Target(factor, Math.max(0, known), seen.baselineTotal(), seen.settings().newcomersMinRatio(), landedRatio, exemptRate);
    }

    @Override
    public Double step(double factor, boolean fenced, double seconds) {
        return null;
    }

    @Override
    public void beforeTurn(Meter meter) {
        weigh(meter);
    }

    @Override
    public int looksOfAll(int meters) {
        return meters / OpenStrategy.READ_MAX + 1;
    }

    @Override
    public boolean metersByOwnTags() {
        return true;
    }

    @Override
    public double arrivalsRememberedSeconds() {
        return 2 * seen.settings().windowSeconds();
    }
}
