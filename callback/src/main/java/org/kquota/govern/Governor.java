package org.kquota.govern;

import org.kquota.admission.Target;
import org.kquota.decision.State;
import org.kquota.metering.Meter;
import org.kquota.metering.Observations;
import org.kquota.metering.ProduceRates;
import org.kquota.quota.Quotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;

import java.util.List;

/**
 * Turns the throttle factor into weights for the fence, and without a fence into produce limits, a step at a time. It looks at the broker's
 * own rates and writes into the tag sets; it never sees a request. Used by one thread.
 *
 * <p>The limits follow from what is observed now and from the rates before OPEN was left, by {@link GovernorLaw}: in THROTTLE each client's
 * is the factor times its baseline or its quota, whichever is less; clients without either share a pool, and in PAUSE all clients do.
 */
public final class Governor {
    /** A client that produced less than this had nothing to throttle: it counts as a newcomer. Bytes per second. */
    private static final double BASELINE_FROM = 1024;
    /** For this long after the start, what the broker took in before its restart counts too. */
    private static final double REMEMBERED_SECONDS = 60;

    /** How producers are held. */
    private enum Hold {
        /** Not at all; baselines are learnt. */
        NONE,
        /** In THROTTLE by the fence. */
        ADMISSION,
        /** In THROTTLE by limits. */
        LIMITS,
        /** In PAUSE, by a pool's limit; a fence refuses before it. */
        PAUSE
    }

    private final Quotas quotas;
    private final Observations seen;
    private volatile GovernorSettings wanted;
    private GovernorSettings settings;
    private Hold hold = Hold.NONE;
    private double factor = 1;
    /** The factor that limits follow. */
    private double easedFactor = 1;
    private boolean byTopic;
    private boolean changed;
    private double openSeconds;
    private double rememberedTotal;
    /** Total rate of all producers before OPEN was left, as far as it is known, bytes per second. */
    private double baselineKnown;
    /** The weights of all shares together, bytes per second. */
    private double known;

    /**
     * @param paused    the pool that all clients share in PAUSE
     * @param newcomers the pool that clients without a baseline share in THROTTLE
     */
    public Governor(GovernorSettings settings, Quotas quotas, TagSets tagSets, TagSet paused, TagSet newcomers, ProduceRates rates) {
        this.wanted = settings;
        this.settings = settings;
        this.quotas = quotas;
        this.seen = new Observations(settings.windowSeconds(), settings.arrivalMinBytes(), tagSets, paused, newcomers, rates);
        // These hold if this governor never gets to look.
        paused.limit(settings.arrivalMinBytes() / settings.muteMaxSeconds());
        newcomers.limit(settings.arrivalMinBytes() / settings.throttleMuteMaxSeconds());
    }

    /** Remembers what all producers produced before this broker's restart, bytes per second; 0 if unknown. To be called before the first step. */
    public void remember(double total) {
        rememberedTotal = total;
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
        byTopic = true;
        return take(next, slowest, true, seconds);
    }

    /**
     * One step.
     *
     * @param next       the state in force; OPEN where nothing is enforced
     * @param nextFactor the throttle factor in [0, 1]
     * @param fenced     whether a fence keeps requests from being appended: all of them in PAUSE, those beyond the target in THROTTLE
     * @param seconds    time since the last step
     * @return whether a limit that is in force changed
     */
    public boolean step(State next, double nextFactor, boolean fenced, double seconds) {
        byTopic = false;
        return take(next, nextFactor, fenced, seconds);
    }

    private boolean take(State next, double nextFactor, boolean fenced, double seconds) {
        if (settings != wanted) {
            settings = wanted;
            seen.requestMaxBytes(settings.arrivalMinBytes());
        }
        List<Meter> looked = seen.look(seconds, this::usesItsTags, this::beforeTurn);
        Hold nextHold = switch (next) {
            case OPEN -> Hold.NONE;
            case THROTTLE -> fenced ? Hold.ADMISSION : Hold.LIMITS;
            case PAUSE -> Hold.PAUSE;
        };
        boolean all = nextHold != hold || nextFactor != factor;
        factor = nextFactor;
        if (nextHold != hold) {
            enter(nextHold);
        }
        switch (hold) {
            case NONE -> openSeconds += seconds;
            case LIMITS -> {
                ease(seconds);
                (all ? seen.meters().stream() : looked.stream()).forEach(this::hold);
                double others = seen.meters().observed();
                double target = GovernorLaw.newcomersTarget(factor, baselineTotal(), others, settings.newcomersMinRatio());
                setPool(seen.newcomers(), target);
            }
            // Behind a sound fence only what was under way still lands: there is nothing to mute.
            case PAUSE -> setPool(seen.paused(), fenced ? baselineTotal() : 0);
            case ADMISSION -> {
                // The weights were taken in each client's turn.
            }
        }
        boolean taken = changed;
        changed = false;
        return taken;
    }

    /** Whether requests of these clients are metered by their own tags. */
    private boolean usesItsTags(TagSet tagSet) {
        return hold == Hold.NONE || hold == Hold.ADMISSION || tagSet.limit() != TagSet.NO_LIMIT;
    }

    private void beforeTurn(Meter meter) {
        if (hold == Hold.NONE) {
            learn(meter);
        } else if (hold == Hold.ADMISSION) {
            weigh(meter);
        }
    }

    /**
     * Limits come down from the baselines to their targets as fast as the window forgets what came before: at once, a client would be muted until it has, and
     * longer than its requests ask for.
     */
    private void ease(double seconds) {
        double step = seconds / settings.windowSeconds();
        easedFactor = factor < easedFactor ? Math.max(factor, easedFactor - (1 - factor) * step) : factor;
    }

    private void enter(Hold next) {
        if (next == Hold.LIMITS) {
            easedFactor = hold == Hold.NONE ? 1 : factor;
        }
        if (hold == Hold.NONE) {
            seen.meters().stream().forEach(this::freeze);
            baselineKnown = Math.max(seen.meters().baselines(), seen.lastSeconds() < REMEMBERED_SECONDS ? rememberedTotal : 0);
        }
        hold = next;
        changed = true;
        known = 0;
        openSeconds = 0;
        seen.meters().stream().forEach(meter -> {
            set(meter.tagSet(), TagSet.NO_LIMIT);
            if (next == Hold.NONE) {
                meter.learnsFrom(seen.lastSeconds());
            } else if (next == Hold.ADMISSION) {
                meter.tagSet().share().know(0, 0);
                weigh(meter);
            }
        });
    }

    private void freeze(Meter meter) {
        learn(meter);
        meter.freeze();
        seen.meters().keep(meter);
        meter.tagSet().hasBaseline(meter.baseline() >= BASELINE_FROM);
    }

    /** Until the last look, what was seen of it before held. */
    private void learn(Meter meter) {
        boolean rateIsOurDoing = openSeconds < settings.windowSeconds();
        meter.learn(seen.lastSeconds(), settings.baselineSeconds(), rateIsOurDoing && meter.tagSet().hasBaseline());
    }

    private void weigh(Meter meter) {
        TagSet tagSet = meter.tagSet();
        double bounded = tagSet.hasBaseline() ? bounded(meter.baseline(), quotas.limit(tagSet.tags())) : 0;
        known += bounded - tagSet.share().weight();
        tagSet.share().know(bounded, meter.requestBytesLately());
        double arrived = meter.takeArrived();
        // By topic, requests to topics that are not held bring bytes, too, and are charged nothing.
        tagSet.share().arrived(byTopic ? 0 : arrived);
    }

    private static double bounded(double rate, Double quota) {
        return quota == null ? rate : Math.min(rate, quota);
    }

    private void hold(Meter meter) {
        TagSet tagSet = meter.tagSet();
        Double quota = quotas.limit(tagSet.tags());
        // A newcomer with a quota keeps its own tags, or its quota would not hold.
        if (tagSet.hasBaseline() || quota != null) {
            double target = easedFactor * bounded(tagSet.hasBaseline() ? meter.baseline() : baselineTotal(), quota);
            set(tagSet, limit(target, meter.requestBytesLately(), meter.observed()));
        }
    }

    private void setPool(Meter pool, double target) {
        set(pool.tagSet(), limit(target, settings.arrivalMinBytes(), pool.observed()));
    }

    private double limit(double target, double arrivalBytes, double observed) {
        return GovernorLaw.limit(target, arrivalBytes, observed, settings.windowSeconds(), muteSeconds());
    }

    private double muteSeconds() {
        return hold == Hold.PAUSE ? settings.muteMaxSeconds() : settings.throttleMuteMaxSeconds();
    }

    private void set(TagSet tagSet, double limit) {
        if (GovernorLaw.hasMoved(tagSet.limit(), limit)) {
            tagSet.limit(limit);
            changed = true;
        }
    }

    /** The assumed total rate of all producers before OPEN was left, bytes per second. */
    private double baselineTotal() {
        return Math.max(baselineKnown, settings.baselineMinBytes());
    }

    /**
     * The target of all clients together, if requests are to be admitted since the last step; otherwise null.
     *
     * @param throttle    the throttle factor of that step
     * @param landedRatio bytes that land for each byte of a request
     * @param exemptRate  rate of exempt principals, bytes per second
     */
    public Target target(double throttle, double landedRatio, double exemptRate) {
        return hold == Hold.ADMISSION
            ? new Target(throttle, Math.max(0, known), baselineTotal(), settings.newcomersMinRatio(), landedRatio, exemptRate) : null;
    }

    /** The figures to report after a step. */
    public Figures figures() {
        boolean held = hold != Hold.NONE;
        Meter pool = hold == Hold.PAUSE ? seen.paused() : seen.newcomers();
        Double muteSeconds = hold == Hold.LIMITS || hold == Hold.PAUSE ? (Double) muteSeconds() : null;
        return new Figures(seen.meters().size(), seen.observedTotal(), held ? baselineTotal() : seen.meters().baselines(), pool.observed(),
            held ? (Double) pool.tagSet().limit() : null, muteSeconds);
    }
}
