package org.kquota.metering;

import org.apache.kafka.server.quota.ClientQuotaType;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The limit that was last calculated for each set of tags, for the case that calculating it fails. Bounded: a limit that was not asked
 * for while as many others were is forgotten, so that clients of months ago leave room for those of today.
 */
public final class LastLimits {
    private final int max;
    private volatile Generations generations = new Generations(new ConcurrentHashMap<>(), Map.of());

    private record Key(ClientQuotaType type, Map<String, String> tags) {
    }

    private record Generations(Map<Key, AtomicReference<Double>> recent, Map<Key, AtomicReference<Double>> older) {
    }

    /** Remembers twice as many at most. */
    public LastLimits(int max) {
        this.max = max;
    }

    /** A limit of null is none. */
    public void remember(ClientQuotaType type, Map<String, String> tags, Double limit) {
        Key key = new Key(type, tags);
        Generations now = generations;
        // A change in place: writing to the map itself would lock a part of it.
        AtomicReference<Double> last = now.recent.get(key);
        if (last != null) {
            last.setRelease(limit);
        } else if (limit != null || now.older.containsKey(key)) {
            if (now.recent.size() >= max) {
                // Where two threads do so at once, some are forgotten too early, and are remembered when they are asked for again.
                now = new Generations(new ConcurrentHashMap<>(), now.recent);
                generations = now;
            }
            now.recent.put(key, new AtomicReference<>(limit));
        }
    }

    /** The last one, or null where it was none or is not known. */
    public Double find(ClientQuotaType type, Map<String, String> tags) {
        Key key = new Key(type, tags);
        Generations now = generations;
        AtomicReference<Double> last = now.recent.get(key);
        if (last == null) {
            last = now.older.get(key);
        }
        return last == null ? null : last.getAcquire();
    }

    int size() {
        Generations now = generations;
        return now.recent.size() + now.older.size();
    }
}
