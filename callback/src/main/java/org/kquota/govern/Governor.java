package org.kquota.govern;

import org.kquota.admission.Target;
import org.kquota.decision.State;
import org.kquota.quota.Quotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;

import java.util.List;

/**
 * Sets the produce limits that make the throttle factor true, a step at a time. It looks at the broker's own rates and
 * writes limits into the tag sets; it never sees a request. Used by one thread.
 */
public final class Governor {
    private volatile GovernorSettings wanted;
    private final Observations seen;
    private final Limits limits = new Limits();
    private final OpenStrategy open;
    private final ThrottleStrategy throttle;
    private final AdmissionStrategy admission;
    private final PauseStrategy pause;
    private State state = State.OPEN;
    private HoldingStrategy strategy;
    private Double poolMuteSeconds;

    /**
     * @param paused    the pool that all clients share in PAUSE
     * @param newcomers the pool that clients without a baseline share in THROTTLE
     */
    public Governor(GovernorSettings settings, Quotas quotas, TagSets tagSets, TagSet paused, TagSet newcomers, ProduceRates rates) {
        this.wanted = settings;
        this.seen = new Observations(settings, tagSets, paused, newcomers, rates);
        FactorHistory history = new FactorHistory(settings.windowSeconds());
        this.open = new OpenStrategy(seen, limits, history);
        this.throttle = new ThrottleStrategy(seen, limits, history, quotas);
        this.admission = new AdmissionStrategy(seen, limits, quotas);
        this.pause = new PauseStrategy(seen, limits, history, quotas);
        this.strategy = open;
        // What holds if this governor never gets to look: little more than one arrival per window.
        double unseen = settings.arrivalMinBytes() / settings.pauseMuteMaxSeconds();
        paused.limit(unseen);
        newcomers.limit(unseen);
    }

    /** Remembers what all producers produced before this broker's restart, bytes per second; 0 if unknown. To be called before the first step. */
    public void remember(double total) {
        open.remember(total);
    }

    /** Goes by these settings from the next step on; their window has to be that of before. On any thread. */
    public void settings(GovernorSettings next) {
        wanted = next;
    }

    /**
     * One step where topics have factors of their own, and the fence refuses by them.
     *
     * @param next       OPEN if no topic is throttled, otherwise THROTTLE
     * @param slowest    the smallest factor of a throttled topic
     * @param seconds    time since the last step
     * @return whether a limit that is in force changed
     */
    public boolean stepByTopic(State next, double slowest, double seconds) {
        seen.byTopic(true);
        return take(next, slowest, true, seconds);
    }

    /**
     * One step.
     *
     * @param next    the state in force; OPEN where nothing is enforced
     * @param factor  the throttle factor in [0, 1]
     * @param fenced  whether a fence keeps requests from being appended: all of them in PAUSE, those beyond the target in THROTTLE
     * @param seconds time since the last step
     * @return whether a limit that is in force changed
     */
    public boolean step(State next, double factor, boolean fenced, double seconds) {
        seen.byTopic(false);
        return take(next, factor, fenced, seconds);
    }

    private boolean take(State next, double factor, boolean fenced, double seconds) {
        // A step before may have ended in the middle.
        limits.takeChanged();
        if (seen.settings() != wanted) {
            seen.settings(wanted);
        }
        poolMuteSeconds = null;
        seen.look(strategy, seconds);
        HoldingStrategy wantedStrategy = switch (next) {
            case OPEN -> open;
            case THROTTLE -> fenced ? admission : throttle;
            case PAUSE -> pause;
        };
        state = next;
        if (wantedStrategy != strategy) {
            enter(wantedStrategy);
        }
        poolMuteSeconds = strategy.step(factor, fenced, seconds);
        return limits.takeChanged();
    }

    private void enter(HoldingStrategy next) {
        strategy.leave();
        strategy = next;
        limits.change();
        seen.alone().forEach(meter -> meter.alone(false));
        seen.alone(List.of());
        strategy.enter();
    }

    /**
     * The target of all clients together, if requests are to be admitted since the last step; otherwise null.
     *
     * @param factor      the throttle factor of that step
     * @param landedRatio bytes that land for each byte of a request
     * @param exemptRate  rate of exempt principals, bytes per second
     */
    public Target target(double factor, double landedRatio, double exemptRate) {
        return strategy == admission ? admission.target(factor, landedRatio, exemptRate) : null;
    }

    /** The figures to report after a step. */
    public Figures figures() {
        boolean held = state != State.OPEN;
        Meter pool = state == State.PAUSE ? seen.paused() : seen.newcomers();
        return new Figures(seen.meters().size(), seen.observedTotal(), held ? seen.baselineTotal() : seen.meters().baselines(), pool.observed(),
            held ? (Double) pool.tagSet().limit() : null, poolMuteSeconds);
    }
}
