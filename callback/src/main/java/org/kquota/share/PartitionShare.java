package org.kquota.share;

import com.google.re2j.Pattern;

import java.util.HashMap;
import java.util.Map;

/**
 * This broker's share of a limit for the whole cluster: the ratio of partitions led here, of those whose topic
 * matches a pattern. Updated by one thread, read by many.
 */
public final class PartitionShare {
    private final Pattern topics;
    private Map<String, Boolean> matches = Map.of();
    private volatile LedPartitions.Count count = new LedPartitions.Count(0, 0);

    /** @param topics pattern that has to match the whole name of a topic */
    public PartitionShare(Pattern topics) {
        this.topics = topics;
    }

    /** Counts again; returns whether the share has changed. */
    public synchronized boolean update(LedPartitions partitions) {
        int all = 0;
        int led = 0;
        Map<String, Boolean> known = new HashMap<>();
        for (Map.Entry<String, LedPartitions.Count> entry : partitions.topics().entrySet()) {
            Boolean match = matches.get(entry.getKey());
            if (match == null) {
                match = topics.matches(entry.getKey());
            }
            known.put(entry.getKey(), match);
            if (match) {
                all += entry.getValue().all();
                led += entry.getValue().led();
            }
        }
        matches = known;
        double before = ratio();
        count = new LedPartitions.Count(all, led);
        return ratio() != before;
    }

    /** Partitions of matching topics: all of them, and those led here. */
    public LedPartitions.Count count() {
        return count;
    }

    /**
     * The share in (0, 1]. A broker that leads none of the partitions gives the share of one of them, because Kafka takes a limit of 0 for
     * none; 1 while no topic matches.
     */
    public double ratio() {
        LedPartitions.Count now = count;
        return now.all() == 0 ? 1 : (double) Math.max(1, now.led()) / now.all();
    }
}
