package org.kquota.metering;

import org.kquota.admission.Admission;
import org.kquota.quota.TagSet;

/** The figures of one tag set. Used by one thread. */
public final class Meter {
    /** The bytes of a client's first moments do not make it a large producer. */
    private static final double YOUNG_MIN_SECONDS = 2;
    private static final long FEW_REQUESTS = 30;

    private final TagSet tagSet;
    private final ProduceRates.Rate rate;
    private final double windowSeconds;
    private double requestMaxBytes;
    private final boolean isPool;
    private final RequestCounts requests;
    private long requestsBefore;
    private double requestLast;
    private double requestBeforeLast;
    private double arrivedLast;
    private double observed;
    /** How long something has been in the window, up to W. */
    private double filledSeconds;
    private double baselineSum;
    private double baselineWeight;
    private double lookedAtSeconds;
    private double learntAtSeconds;
    /** Bytes that a client of this baseline would have brought while it was held, less those that it has brought since. */
    private double withheldBytes;
    private boolean isHeld;
    private boolean quiet;
    private int place;

    /**
     * @param rate            the broker's rate of it
     * @param sinceSeconds    since when it is looked at, on the governor's clock
     * @param windowSeconds   W
     * @param requestMaxBytes the most that one request brings, as a rule
     * @param isPool          whether clients come and go in it as they are held
     */
    Meter(TagSet tagSet, ProduceRates.Rate rate, double sinceSeconds, double windowSeconds, double requestMaxBytes, boolean isPool) {
        this.tagSet = tagSet;
        this.rate = rate;
        this.lookedAtSeconds = sinceSeconds;
        this.learntAtSeconds = sinceSeconds;
        this.windowSeconds = windowSeconds;
        this.requestMaxBytes = requestMaxBytes;
        this.isPool = isPool;
        this.requests = new RequestCounts(windowSeconds);
    }

    /** The most that one request brings, as a rule, from now on. */
    void requestMaxBytes(double bytes) {
        requestMaxBytes = bytes;
    }

    public TagSet tagSet() {
        return tagSet;
    }

    /** Where it is among the others. */
    int place() {
        return place;
    }

    void place(int number) {
        place = number;
    }

    /** O at the last look, bytes per second. */
    public double observed() {
        return observed;
    }

    /** The rate, in a window that need not be full yet, bytes per second. */
    private double produced() {
        return observed * windowSeconds / Math.max(filledSeconds, Math.min(YOUNG_MIN_SECONDS, windowSeconds));
    }

    /** The moving average of the rate while OPEN, bytes per second. */
    public double baseline() {
        return baselineWeight > 0 ? baselineSum / baselineWeight : 0;
    }

    /**
     * Whether another look at it would find what the last one did: nothing is left of it, and no request has come since. Never
     * of a pool, into which requests get uncounted where their tags could not be found out.
     */
    boolean isQuiet() {
        return quiet && tagSet.requests() == requestsBefore;
    }

    /** Takes no look, because there is nothing to see. */
    void pass(double nowSeconds) {
        withhold(0, nowSeconds - lookedAtSeconds);
        lookedAtSeconds = nowSeconds;
    }

    private void withhold(double rate, double seconds) {
        if (isHeld) {
            withheldBytes = Math.min(withheldBytes + Math.max(0, baseline() - rate) * seconds, baseline() * Admission.RECORD_KEPT_SECONDS);
        }
    }

    /**
     * Takes a look.
     *
     * @param nowSeconds  time on the governor's clock
     * @param usesItsTags whether requests are metered by its tags now; if not, a rate that was nothing stays so
     */
    void observe(double nowSeconds, boolean usesItsTags) {
        double now = usesItsTags || observed > 0 ? rate.bytesPerSecond().orElse(0) : 0;
        double seconds = nowSeconds - lookedAtSeconds;
        lookedAtSeconds = nowSeconds;
        withhold(now, seconds);
        long requestsNow = tagSet.requests();
        long came = requestsNow - requestsBefore;
        requestsBefore = requestsNow;
        requests.add(came, seconds);
        if (came > 0) {
            requestBeforeLast = requestLast;
            double brought = Math.min(broughtEach(now, came), requestMaxBytes);
            // Of many, as much leaves the window as comes: what they seem to have brought is noise below their mean.
            requestLast = requests.inWindow() < FEW_REQUESTS ? brought : Math.max(brought, Math.min(usualRequestBytes(now), requestMaxBytes));
            arrivedLast = Math.max(0, brought * came);
        }
        observed = now;
        filledSeconds = now > 0 ? Math.min(filledSeconds + seconds, windowSeconds) : 0;
        // A request is counted before its bytes are: only when the window has passed since, its bytes can't be still to come.
        quiet = !isPool && now == 0 && requests.inWindow() == 0;
    }

    /**
     * The mean size of the requests that came since the last look. Until the window is full, all that came is in it, and the broker's rate jumps up by one second's
     * part of it at most: the rest of a rise is theirs, and so is their mean. A client that waits for longer than the window is young each time.
     */
    private double broughtEach(double rateNow, long came) {
        if (filledSeconds >= windowSeconds) {
            return (rateNow - observed) * windowSeconds / came;
        }
        return Math.max(usualRequestBytes(rateNow), (rateNow - observed * (1 + 1 / windowSeconds)) * windowSeconds / came);
    }

    /** The usual size of its requests, bytes. */
    double requestBytes() {
        return usualRequestBytes(observed);
    }

    /** The bytes that requests brought at least between the last two looks; 0 if it was asked for already. */
    public double takeArrived() {
        double arrived = arrivedLast;
        arrivedLast = 0;
        return arrived;
    }

    /**
     * The same while a client waits, whose requests grow: the size of the larger of the last two. One alone may seem smaller than it was, because others leave
     * the window at the same moment; and of a few, the mean is off by a large part of one. If many came, it is their mean, or the last if that is larger.
     */
    public double requestBytesLately() {
        double last = Math.max(requestLast, requestBeforeLast);
        return last > 0 && requests.inWindow() < FEW_REQUESTS ? last : Math.max(requestBytes(), requestLast);
    }

    private double usualRequestBytes(double rate) {
        return requests.inWindow() == 0 ? 0 : rate * windowSeconds / requests.inWindow();
    }

    /** OPEN begins: the meter learns the rate from then on. */
    public void learnsFrom(double sinceSeconds) {
        isHeld = false;
        learntAtSeconds = sinceSeconds;
    }

    /**
     * OPEN: until then the baseline followed what was seen at the last look; that of a new client is the mean of its life. A rate above the baseline is not believed
     * before it has brought what was withheld: a client that catches up is not a larger one.
     *
     * @param onlyUpwards whether O still shows what a throttle did to it: only what is above the frozen baseline is believed
     */
    public void learn(double untilSeconds, double baselineSeconds, boolean onlyUpwards) {
        double seconds = untilSeconds - learntAtSeconds;
        learntAtSeconds = untilSeconds;
        if (seconds <= 0 || onlyUpwards && observed <= baseline()) {
            return;
        }
        double rate = produced();
        if (withheldBytes > 0 && rate > baseline()) {
            withheldBytes -= (rate - baseline()) * seconds;
            rate = baseline();
        }
        double share = 1 - Math.exp(-seconds / baselineSeconds);
        baselineSum += (rate - baselineSum) * share;
        baselineWeight += (1 - baselineWeight) * share;
    }

    /** OPEN is left. */
    public void freeze() {
        isHeld = true;
    }
}
