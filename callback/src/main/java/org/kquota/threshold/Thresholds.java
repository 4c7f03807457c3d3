package org.kquota.threshold;

import static org.kquota.error.PluginLog.LOG;

import org.kquota.error.Errors;
import org.kquota.share.LedPartitions;

import java.nio.file.Path;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/** The thresholds of topics on this node: their file, the topics they are divided among, and the topics that they refuse. */
public final class Thresholds {
    /** Written by brokers themselves, and needed to free space. */
    public static final Set<String> INTERNAL_TOPICS =
        Set.of("__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata");
    private static final long JUDGE_NANOS = 1_000_000_000L;
    /** A judgement holds for this long, unless the next one replaces it. */
    private static final long HOLDS_NANOS = 10_000_000_000L;

    private final ThresholdsFile file;
    private final TopicGate gate;
    private final BytesIn bytesIn;
    private final Set<String> ownTopics;
    private final Supplier<String> whyNot;
    private final Errors errors;
    private volatile List<String> topicsHere = List.of();
    private volatile long judgedNanos;
    private long lastJudgedNanos = System.nanoTime() - JUDGE_NANOS;

    /**
     * @param ownTopics those of kquota itself
     * @param whyNot    why no request is refused now, or null
     */
    public Thresholds(Path file, Set<String> ownTopics, Supplier<String> whyNot, Errors errors) {
        this(file, ownTopics, new JmxBytesIn(), whyNot, errors);
    }

    /** With other meters. */
    public Thresholds(Path file, Set<String> ownTopics, BytesIn bytesIn, Supplier<String> whyNot, Errors errors) {
        this.ownTopics = ownTopics;
        this.bytesIn = bytesIn;
        this.gate = new TopicGate(bytesIn);
        this.file = new ThresholdsFile(file);
        this.whyNot = whyNot;
        this.errors = errors;
    }

    public TopicGate gate() {
        return gate;
    }

    /** Whether this topic takes nothing in. That ends as soon as thresholds no longer act, whenever they are judged next. */
    public boolean isClosedFor(String topic) {
        return gate.isClosedFor(topic) && isClosedFor(topic, System.nanoTime());
    }

    /** The same at that moment of System.nanoTime(). Old rates refuse no request: the thread that judges may hang, or not get to see any. */
    public boolean isClosedFor(String topic, long nanos) {
        return gate.isClosedFor(topic) && whyNot.get() == null && nanos - judgedNanos < HOLDS_NANOS;
    }

    public TopicThresholds inForce() {
        return file.inForce();
    }

    /** The topics of clients that this broker leads partitions of. */
    List<String> topicsHere() {
        return topicsHere;
    }

    /** Takes over the leaders of partitions. */
    public void update(LedPartitions partitions) {
        topicsHere = partitions.topics().entrySet().stream()
            .filter(entry -> entry.getValue().led() > 0 && isOfClients(entry.getKey()))
            .map(Map.Entry::getKey).sorted().toList();
        bytesIn.keep(Set.copyOf(topicsHere));
    }

    /**
     * The topics here, and those with a threshold of their own: the broker has no rate of one that it does not lead, and does not pass on
     * which it leads while another broker is down (KAFKA-20746).
     */
    private Collection<String> judged(TopicThresholds thresholds) {
        if (thresholds == null) {
            return topicsHere;
        }
        Set<String> judged = new LinkedHashSet<>(topicsHere);
        thresholds.explicit().keySet().stream().filter(this::isOfClients).forEach(judged::add);
        return judged;
    }

    private boolean isOfClients(String topic) {
        return !INTERNAL_TOPICS.contains(topic) && !ownTopics.contains(topic);
    }

    /** Looks at the file; on a thread that may wait for it. */
    public void read() {
        switch (file.look()) {
            case REFUSED -> {
                LOG.error("{}; {} stays in force", file.refused(), file.inForce() == null ? "no threshold" : "the last accepted version");
                errors.count(Errors.Kind.THRESHOLDS, file.refused());
            }
            case IN_FORCE -> LOG.info("thresholds of bytes in are in force: {}{}", file.inForce() == null ? "none"
                : file.inForce().total() + " B/s in all, and those of " + file.inForce().explicit().size() + " topics",
                whyNot.get() == null ? "" : "; no request is refused, because " + whyNot.get());
            case NONE -> { }
        }
    }

    /** Judges by the broker's meters, once a second however often it is called. */
    public void judge(long nanos) {
        if (nanos - lastJudgedNanos < JUDGE_NANOS) {
            return;
        }
        lastJudgedNanos = nanos;
        try {
            TopicThresholds thresholds = file.inForce();
            gate.judge(thresholds, judged(thresholds), nanos, whyNot.get());
            judgedNanos = nanos;
        } catch (RuntimeException | Error e) {
            errors.count(Errors.Kind.THRESHOLDS, e);
        }
    }
}
