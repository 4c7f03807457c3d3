package org.kquota.govern;

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
    private final PauseStrategy pause;
    private State state = State.OPEN;
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
        this.pause = new PauseStrategy(seen, limits, history, quotas);
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
     * One step.
     *
     * @param next    the state in force; OPEN where nothing is enforced
     * @param factor  the throttle factor in [0, 1]
     * @param fenced  whether something else keeps requests from being appended in PAUSE
     * @param seconds time since the last step
     * @return whether a limit that is in force changed
     */
    public boolean step(State next, double factor, boolean fenced, double seconds) {
        // A step before may have ended in the middle.
        limits.takeChanged();
        if (seen.settings() != wanted) {
            seen.settings(wanted);
        }
        poolMuteSeconds = null;
        seen.look(strategy(), seconds);
        if (next != state) {
            enter(next);
        }
        poolMuteSeconds = strategy().step(factor, fenced, seconds);
        return limits.takeChanged();
    }

    private HoldingStrategy strategy() {
        return switch (state) {
            case OPEN -> open;
            case THROTTLE -> throttle;
            case PAUSE -> pause;
        };
    }

    private void enter(State next) {
        strategy().leave();
        state = next;
        limits.change();
        seen.alone().forEach(meter -> meter.alone(false));
        seen.alone(List.of());
        strategy().enter();
    }

    /** The figures to report after a step. */
    public Figures figures() {
        boolean held = state != State.OPEN;
        Meter pool = state == State.PAUSE ? seen.paused() : seen.newcomers();
        return new Figures(seen.meters().size(), seen.observedTotal(), held ? seen.baselineTotal() : seen.meters().baselines(), pool.observed(),
            held ? (Double) pool.tagSet().limit() : null, poolMuteSeconds);
    }
}
