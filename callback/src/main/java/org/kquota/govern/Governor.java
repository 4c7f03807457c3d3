package org.kquota.govern;

import org.kquota.decision.State;
import org.kquota.quota.Quotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Queue;
import java.util.stream.Stream;

/**
 * Sets the produce limits that make the throttle factor true, a step at a time. It looks at the broker's own rates and
 * writes limits into the tag sets; it never sees a request. Used by one thread.
 */
public final class Governor {
    /** A client that produced less than this had nothing to throttle: it counts as a newcomer. Bytes per second. */
    static final double BASELINE_FROM = 1024;
    /** For so long after the start, what the broker took in before its restart counts too. */
    private static final double REMEMBERED_SECONDS = 60;
    /** So many clients at most keep their own tags when a pause begins: Kafka looks at each limit that changes. */
    private static final int MAX_APART = 100;
    /** So many clients at most are looked at in one look while nobody is held: each rate costs half a microsecond. */
    private static final int READ_MAX = 1000;
    /** Those whose rate decides on no limit now are looked at once in so many looks. */
    private static final int LOOKS_OF_THE_REST = 10;

    private volatile GovernorSettings wanted;
    private GovernorSettings settings;
    private final Quotas quotas;
    private final ProduceRates rates;
    private final FactorHistory history;
    private final Meters meters = new Meters();
    private final Queue<TagSet> made;
    private final Meter paused;
    private final Meter newcomers;
    private final MuteRounds rounds;
    /** What arrives from all of them together, which is what the pool of a pause has to reckon with. */
    private final RecentMaximum arrivals = new RecentMaximum();

    /** The most that those who are in the pool of a pause from its beginning brought between two looks before it. */
    private double poolBurst;

    private State state = State.OPEN;
    private double inStateSeconds;
    private double nowSeconds;
    private double lastSeconds;
    /** How long this pause has lasted without a fence. */
    private double unfencedSeconds;
    /** Those whose own rate decides on their limit now: in THROTTLE by their share, in PAUSE by what they produced before. */
    private List<Meter> alone = List.of();
    /** Of whom it has to be found out in this look whether they are to be held alone in THROTTLE. */
    private final List<Meter> candidates = new ArrayList<>();
    /** What those who were put into the pool of a THROTTLE produced before it, bytes per second. */
    private double pooledBaseline;
    /** What all of them are known to have produced before it, bytes per second. */
    private double baselineKnown;
    private double observedTotal;
    private double sinceStartSeconds;
    private double rememberedTotal;
    private boolean changed;
    private Double poolMuteSeconds;

    /**
     * @param paused          the pool that all clients share in PAUSE
     * @param newcomers       the pool that clients without a baseline share in THROTTLE
     */
    public Governor(GovernorSettings settings, Quotas quotas, TagSets tagSets, TagSet paused, TagSet newcomers, ProduceRates rates) {
        this.wanted = settings;
        this.settings = settings;
        this.quotas = quotas;
        this.rates = rates;
        this.paused = meter(paused, true);
        this.newcomers = meter(newcomers, true);
        this.meters.add(meter(tagSets.overflow(), true));
        this.made = tagSets.watch();
        this.history = new FactorHistory(settings.windowSeconds());
        this.rounds = new MuteRounds(settings.windowSeconds());
        // What holds if this governor never gets to look: little more than one arrival per window.
        double unseen = settings.arrivalMinBytes() / settings.pauseMuteMaxSeconds();
        paused.limit(unseen);
        newcomers.limit(unseen);
    }

    /** Remembers what all producers produced before this broker's restart, bytes per second; 0 if unknown. To be called before the first step. */
    public void remember(double total) {
        rememberedTotal = total;
        baselineKnown = total;
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
        if (settings != wanted) {
            settings = wanted;
            Stream.concat(Stream.of(paused, newcomers), meters.stream()).forEach(meter -> meter.requestMaxBytes(settings.arrivalMinBytes()));
        }
        changed = false;
        poolMuteSeconds = null;
        lastSeconds = nowSeconds;
        nowSeconds += seconds;
        look(seconds);
        if (next != state) {
            enter(next);
        }
        inStateSeconds += seconds;
        sinceStartSeconds += seconds;
        switch (next) {
            case THROTTLE -> throttle(factor, seconds);
            case PAUSE -> pause(fenced, seconds);
        }
        return changed;
    }

    /** What to report after a step. */
    public Figures figures() {
        Meter pool = state == State.PAUSE ? paused : newcomers;
        return new Figures(meters.size(), observedTotal, state == State.OPEN ? meters.baselines() : baselineTotal(), pool.observed(),
            state == State.OPEN ? null : (Double) pool.tagSet().limit(), poolMuteSeconds);
    }

    private void look(double seconds) {
        for (TagSet tagSet = made.poll(); tagSet != null; tagSet = made.poll()) {
            Meter meter = meter(tagSet, false);
            meters.add(meter);
            if (state == State.THROTTLE) {
                candidates.add(meter);
            }
        }
        double arrived = observe(paused, true) + observe(newcomers, true);
        for (Meter meter : alone) {
            arrived += observe(meter, true);
            meters.keep(meter);
        }
        int turn = meters.turn(state == State.OPEN ? meters.size() / READ_MAX + 1 : LOOKS_OF_THE_REST);
        double arrivedInTurn = 0;
        for (int i = 0; i < turn; i++) {
            Meter meter = meters.next();
            if (meter != null && !meter.isAlone()) {
                arrivedInTurn += lookInTurn(meter);
            }
        }
        observedTotal = paused.observed() + newcomers.observed() + meters.observed();
        // Those whose turn it is stand for all.
        arrivals.add(arrived + arrivedInTurn * meters.size() / turn, seconds, arrivalsRememberedSeconds());
    }

    private double lookInTurn(Meter meter) {
        if (state == State.OPEN) {
            learn(meter);
        } else if (state == State.THROTTLE && !meter.tagSet().pooled()) {
            candidates.add(meter);
        }
        double arrived = observe(meter, state == State.OPEN);
        meters.keep(meter);
        return arrived;
    }

    private Meter meter(TagSet tagSet, boolean isPool) {
        return new Meter(tagSet, rates.of(tagSet.tags()), lastSeconds, settings.windowSeconds(), settings.arrivalMinBytes(), isPool);
    }

    private double observe(Meter meter, boolean usesItsTags) {
        if (meter.isQuiet()) {
            meter.pass(nowSeconds);
            return 0;
        }
        return meter.observe(nowSeconds, usesItsTags, arrivalsRememberedSeconds());
    }

    /** Until the last look, what was seen of it before held. */
    private void learn(Meter meter) {
        boolean rateIsOurDoing = inStateSeconds < settings.windowSeconds();
        meter.learn(lastSeconds, settings.baselineSeconds(), rateIsOurDoing && meter.tagSet().hasBaseline());
    }

    /** Who is muted for D comes back once each D, so what arrived in the last 2·D tells; without mutes bursts may be rarer. */
    private double arrivalsRememberedSeconds() {
        return 2 * (state == State.PAUSE ? pauseMuteSeconds() : settings.windowSeconds());
    }

    private double pauseMuteSeconds() {
        return GovernorLaw.pauseMuteSeconds(unfencedSeconds, settings.muteMinSeconds(), settings.pauseMuteMaxSeconds());
    }

    private void enter(State next) {
        if (state == State.OPEN) {
            meters.stream().forEach(this::freeze);
            baselineKnown = Math.max(meters.baselines(), sinceStartSeconds < REMEMBERED_SECONDS ? rememberedTotal : 0);
        }
        state = next;
        inStateSeconds = 0;
        unfencedSeconds = 0;
        rounds.clear();
        changed = true;
        alone.forEach(meter -> holdApart(meter, false));
        alone = List.of();
        candidates.clear();
        switch (next) {
            case OPEN -> {
                history.clear();
                meters.stream().forEach(this::free);
            }
            case THROTTLE -> {
                pooledBaseline = meters.stream().filter(meter -> meter.tagSet().pooled()).mapToDouble(Meter::baseline).sum();
                meters.stream().filter(meter -> !meter.tagSet().pooled()).forEach(candidates::add);
            }
            case PAUSE -> {
                meters.stream().forEach(Meter::pauseBegins);
                alone = withHistory();
                alone.forEach(meter -> holdApart(meter, true));
                List<Meter> pooled = meters.stream().filter(meter -> !meter.isAlone()).toList();
                poolBurst = Math.min(arrivals.get(), pooled.stream().mapToDouble(Meter::burstBytes).sum());
                arrivals.restart(pooled.stream().mapToDouble(Meter::arrivalBytes).sum());
            }
        }
    }

    private double baselineTotal() {
        return Math.max(baselineKnown, settings.baselineMinBytes());
    }

    private void freeze(Meter meter) {
        learn(meter);
        meter.freeze();
        meters.keep(meter);
        meter.tagSet().hasBaseline(meter.baseline() >= BASELINE_FROM);
        meter.tagSet().pooled(false);
    }

    private void free(Meter meter) {
        meter.learnsFrom(lastSeconds);
        set(meter.tagSet(), TagSet.NO_LIMIT);
    }

    /** Who has produced enough to be muted exactly from the first request on, the largest first. */
    private List<Meter> withHistory() {
        return meters.stream().filter(this::isMutedExactly).sorted(Comparator.comparingDouble(Meter::observed).reversed())
            .limit(MAX_APART).toList();
    }

    private boolean isMutedExactly(Meter meter) {
        double windowSeconds = settings.windowSeconds();
        return pauseBounds(meter).areExact(meter.observed() * windowSeconds, windowSeconds);
    }

    /**
     * A client with a history of its own is muted in any case, by half of D at least: were more expected of it than it produces in
     * that time, nothing would hold it at all. What is beyond is a surprise.
     */
    private GovernorLaw.Bounds pauseBounds(Meter meter) {
        double expectedBytes = Math.min(meter.arrivalBytes(), pauseMuteSeconds() / 2 * meter.observed());
        return pauseBounds(expectedBytes, Math.max(meter.arrivalBytes(), meter.burstBytes()));
    }

    private GovernorLaw.Bounds pauseBounds(double arrivalBytes, double burstBytes) {
        return new GovernorLaw.Bounds(arrivalBytes, pauseMuteSeconds(), Math.max(settings.arrivalMinBytes(), burstBytes),
            settings.pauseMuteMaxSeconds());
    }

    private void throttle(double factor, double seconds) {
        history.add(factor, seconds);
        // Who has just come may be here twice, because it was its turn, too.
        List<Meter> those = Stream.concat(alone.stream(), candidates.stream()).distinct().toList();
        alone = those.stream().filter(meter -> holdAlone(meter, factor)).toList();
        candidates.clear();
        double observedApart = alone.stream().filter(meter -> meter.tagSet().hasBaseline()).mapToDouble(Meter::observed).sum();
        double target = GovernorLaw.poolTarget(factor, baselineTotal(), observedApart, pooledBaseline, settings.newcomersMinRatio());
        GovernorLaw.Bounds bounds = throttleBounds(newcomers, rounds.bytes(), target);
        poolMuteSeconds = bounds.muteSeconds();
        double below = GovernorLaw.limitForMutes(target, rounds.bytes(), settings.windowSeconds(), settings.throttleMuteMaxSeconds());
        set(newcomers.tagSet(), GovernorLaw.limit(below, newcomers.observed(), settings.windowSeconds(), bounds));
        rounds.add(newcomers.observed(), newcomers.tagSet().limit(), seconds);
    }

    /** Sets the limit of its own that a client has in THROTTLE; returns whether it has one, and is not in the pool. */
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
            double unscaled = Math.min(quota, baselineTotal());
            govern(meter, factor, unscaled, quota, factor * unscaled * history.shareBefore(settings.windowSeconds()));
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
        double smallestLimit = settings.arrivalMinBytes() / settings.throttleMuteMaxSeconds();
        return factor * baseline < smallestLimit && (quota == null || quota >= smallestLimit);
    }

    private void govern(Meter meter, double factor, double unscaled, Double quota, double leftOfBefore) {
        double bound = quota == null ? Double.POSITIVE_INFINITY : quota;
        double target = GovernorLaw.target(factor, unscaled, bound);
        double average = leftOfBefore + history.weightedFactor() * Math.min(unscaled, bound);
        double limit = GovernorLaw.limit(average, meter.observed(), settings.windowSeconds(), throttleBounds(meter, 0, target));
        // The quota itself is the operator's and mutes as in any broker: a throttle never gives more than that.
        set(meter.tagSet(), Math.min(limit, bound));
    }

    private void pause(boolean fenced, double seconds) {
        history.add(0, seconds);
        // Behind a fence only what was under way when the pause began is left to mute: as briefly as at the beginning of
        // any pause, so that nothing is left of it at the end. A fence that fails begins the pause anew.
        unfencedSeconds = fenced ? 0 : unfencedSeconds + seconds;
        poolMuteSeconds = pauseMuteSeconds();
        holdApart();
        // Whoever is in the pool next, nothing arrives there that everyone together does not bring.
        double arrivalBytes = Math.max(paused.arrivalBytes(), arrivals.get());
        set(paused.tagSet(), GovernorLaw.limit(0, paused.observed(), settings.windowSeconds(), pauseBounds(arrivalBytes, poolBurst)), pauseChangeMinRatio());
    }

    /**
     * The pool is empty when a pause begins, and so cannot mute until much has landed in it. Whoever has a history of his
     * own is held by it, until it has left the window.
     */
    private void holdApart() {
        List<Meter> before = alone;
        alone = before.stream().filter(meter -> {
            boolean still = isMutedExactly(meter);
            if (still) {
                double limit = GovernorLaw.limit(0, meter.observed(), settings.windowSeconds(), pauseBounds(meter));
                Double quota = quotas.limit(meter.tagSet().tags());
                set(meter.tagSet(), quota == null ? limit : Math.min(limit, quota), pauseChangeMinRatio());
            }
            holdApart(meter, still);
            return still;
        }).toList();
        // Who goes into the pool now brings a request there, perhaps all of them at once.
        arrivals.add(before.stream().filter(meter -> !meter.isAlone()).mapToDouble(Meter::requestBytes).sum(), 0, arrivalsRememberedSeconds());
    }

    private static void holdApart(Meter meter, boolean apart) {
        meter.alone(apart);
        meter.tagSet().heldApart(apart);
    }

    private GovernorLaw.Bounds throttleBounds(Meter meter, double roundBytes, double target) {
        double longest = settings.throttleMuteMaxSeconds();
        double muteSeconds = GovernorLaw.throttleMuteSeconds(meter.arrivalBytes(), roundBytes, target, settings.muteMinSeconds(), longest);
        return new GovernorLaw.Bounds(meter.arrivalBytes(), muteSeconds, settings.arrivalMinBytes(), longest);
    }

    private void set(TagSet tagSet, double limit) {
        set(tagSet, limit, settings.limitChangeMinRatio());
    }

    private void set(TagSet tagSet, double limit, double changeMinRatio) {
        if (GovernorLaw.hasMoved(tagSet.limit(), limit, changeMinRatio)) {
            tagSet.limit(limit);
            changed = true;
        }
    }

    /** Kafka logs each change, on disks that are nearly full: those that move a mute by less than a tenth of D can be spared. */
    private double pauseChangeMinRatio() {
        double muteSeconds = pauseMuteSeconds();
        return Math.max(settings.limitChangeMinRatio(), 0.1 * muteSeconds / (settings.windowSeconds() + muteSeconds));
    }
}
