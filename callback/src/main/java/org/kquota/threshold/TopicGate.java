package org.kquota.threshold;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;

/**
 * Which topics take nothing in now: while the total rate is above its threshold, those whose own rate is above theirs. While it does
 * not act, it only logs which they would be. One
 * thread judges, once a second; request threads look a topic up and count what they refuse.
 */
public final class TopicGate {
    /** How often the number of refused requests is logged. */
    static final long LOG_NANOS = 10_000_000_000L;
    /** At most this many topics have a line of their own at a time. */
    private static final int MOST_LOGGED = 20;
    private static final Logger LOG = LoggerFactory.getLogger(TopicGate.class);

    private final BytesIn bytesIn;
    private final LongAdder refusals = new LongAdder();
    private final Map<String, LongAdder> unlogged = new ConcurrentHashMap<>();
    private volatile Map<String, Over> over = Map.of();
    private volatile boolean acts = true;
    private long lastLoggedNanos;

    /** Why a topic takes nothing in; all in bytes per second. */
    public record Over(double rate, double threshold, double totalRate, long totalThreshold) {
        @Override
        public String toString() {
            return String.format(Locale.ROOT, "%.0f B/s come in, above its threshold of %.0f, and %.0f in all, above the threshold of %d",
                rate, threshold, totalRate, totalThreshold);
        }
    }

    public TopicGate(BytesIn bytesIn) {
        this.bytesIn = bytesIn;
    }

    /**
     * Judges again.
     *
     * @param thresholds the thresholds in force, or null where there are none
     * @param topicsHere the topics that this broker leads partitions of, perhaps with others that have thresholds of their own
     * @param nanos      now, as System.nanoTime()
     * @param whyNot     why no request is refused although a topic is over, or null
     */
    public void judge(TopicThresholds thresholds, Collection<String> topicsHere, long nanos, String whyNot) {
        Map<String, Over> next = new HashMap<>();
        double total = thresholds == null ? 0 : bytesIn.total();
        if (thresholds != null && total > thresholds.total()) {
            double share = thresholds.share(topicsHere);
            for (String topic : topicsHere) {
                double threshold = thresholds.of(topic, share);
                double rate = bytesIn.of(topic);
                if (rate > threshold) {
                    next.put(topic, new Over(rate, threshold, total, thresholds.total()));
                }
            }
        }
        Map<String, Over> before = acts == (whyNot == null) ? over : Map.of();
        acts = whyNot == null;
        over = Map.copyOf(next);
        log(before, nanos, whyNot);
    }

    private void log(Map<String, Over> before, long nanos, String whyNot) {
        logEach(without(over, before), topic -> {
            if (whyNot == null) {
                LOG.warn("topic {} takes nothing in from now on: {}", topic, over.get(topic));
            } else {
                LOG.info("topic {} would take nothing in from now on, but {}: {}", topic, whyNot, over.get(topic));
            }
        }, more -> {
            if (whyNot == null) {
                LOG.warn("{} more topics take nothing in from now on", more.size());
            } else {
                LOG.info("{} more topics would take nothing in from now on, but {}", more.size(), whyNot);
            }
        });
        String again = whyNot == null ? "take in again" : "would take in again";
        logEach(without(before, over), topic -> LOG.info("topic {} {}", topic, whyNot == null ? "takes in again" : again),
            more -> LOG.info("{} more topics {}", more.size(), again));
        if (nanos - lastLoggedNanos >= LOG_NANOS) {
            lastLoggedNanos = nanos;
            logRefusals(before);
        }
    }

    private void logRefusals(Map<String, Over> before) {
        Map<String, Long> counts = new HashMap<>();
        unlogged.forEach((topic, count) -> counts.put(topic, count.sum()));
        unlogged.clear();
        Comparator<String> mostFirst = Comparator.comparingLong((String topic) -> counts.get(topic)).reversed().thenComparing(Comparator.naturalOrder());
        logEach(counts.keySet().stream().sorted(mostFirst).toList(), topic -> {
            Over why = over.getOrDefault(topic, before.get(topic));
            LOG.warn("{} produce requests to topic {} were refused{}", counts.get(topic), topic, why == null ? "" : ": " + why);
        }, more -> LOG.warn("{} more topics had {} produce requests refused", more.size(), more.stream().mapToLong(counts::get).sum()));
    }

    private static List<String> without(Map<String, Over> these, Map<String, Over> those) {
        return these.keySet().stream().filter(topic -> !those.containsKey(topic)).sorted().toList();
    }

    /** Thousands of topics may come over their thresholds at the same moment, and again a few seconds later. */
    private static void logEach(List<String> topics, Consumer<String> one, Consumer<List<String>> others) {
        int shown = Math.min(topics.size(), MOST_LOGGED);
        topics.subList(0, shown).forEach(one);
        if (shown < topics.size()) {
            others.accept(topics.subList(shown, topics.size()));
        }
    }

    /** Whether any topic takes nothing in; nearly free, for requests that have nothing to do with it. */
    public boolean isClosedForSome() {
        return acts && !over.isEmpty();
    }

    /** Whether this topic takes nothing in. */
    public boolean isClosedFor(String topic) {
        return acts && over.containsKey(topic);
    }

    /** A produce request was refused because of this topic. */
    public void refused(String topic) {
        refusals.increment();
        unlogged.computeIfAbsent(topic, key -> new LongAdder()).increment();
    }

    /** Produce requests refused since the broker started. */
    public long refusals() {
        return refusals.sum();
    }

    /** The topics that are over their thresholds while the broker is over its own, and why; they take nothing in if it acts. */
    public Map<String, Over> over() {
        return over;
    }
}
