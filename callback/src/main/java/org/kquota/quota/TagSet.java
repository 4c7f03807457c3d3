package org.kquota.quota;

import java.util.Map;

/**
 * The clients that share one set of metric tags, and so one limit. The governor's figures are written by its thread
 * only; the request threads read {@link #limit()} and the flags, and write {@link #touch}.
 */
public final class TagSet {
    /** The limit of a tag set that the governor does not hold. */
    public static final double NO_LIMIT = Double.POSITIVE_INFINITY;

    private final Map<String, String> tags;
    private volatile int lastTouchSeconds;
    private volatile double limit = NO_LIMIT;
    private volatile boolean hasBaseline;
    private volatile boolean heldApart;
    private volatile boolean pooled;

    public TagSet(Map<String, String> tags) {
        this.tags = tags;
    }

    public Map<String, String> tags() {
        return tags;
    }

    /** A request used these tags at that second. */
    public void touch(int seconds) {
        if (lastTouchSeconds != seconds) {
            lastTouchSeconds = seconds;
        }
    }

    public int lastTouchSeconds() {
        return lastTouchSeconds;
    }

    /** The governor's limit in bytes per second, or {@link #NO_LIMIT}. */
    public double limit() {
        return limit;
    }

    public void limit(double bytesPerSecond) {
        limit = bytesPerSecond;
    }

    /** Whether these clients were producing when OPEN was left. */
    public boolean hasBaseline() {
        return hasBaseline;
    }

    public void hasBaseline(boolean known) {
        hasBaseline = known;
    }

    /** Whether these clients keep their own tags in PAUSE, because what they produced before still counts there. */
    public boolean heldApart() {
        return heldApart;
    }

    public void heldApart(boolean apart) {
        heldApart = apart;
    }

    /** Whether in THROTTLE these clients share the pool, because their share is too small to be held alone. */
    public boolean pooled() {
        return pooled;
    }

    public void pooled(boolean shares) {
        pooled = shares;
    }

    @Override
    public String toString() {
        return tags.toString();
    }
}
