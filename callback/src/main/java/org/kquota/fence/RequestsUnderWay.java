package org.kquota.fence;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Requests that a client had sent before it knew that an earlier one on the same connection was refused. None of them may be appended to a topic of the refused one: Kafka
 * takes any sequence number as a producer's first one in a partition, and the refused records, sent again, would come out of order until they time out.
 *
 * <p>A broker handles the requests of a connection one after the other, so an entry has one thread at a time.
 */
final class RequestsUnderWay {
    /** Clients wait for 80 ms at least, by default, before they send a refused request again. */
    private static final long GAP_NANOS = 60_000_000L;
    /** How long a topic is refused for the sake of one refusal: a client of very many partitions would otherwise have all of them refused for one another's. */
    private static final long CHAIN_NANOS = 250_000_000L;
    private static final long KEPT_NANOS = 1_000_000_000L;

    /**
     * @param began for each topic, when a request that wrote to it was refused for a reason of its own, or the one that it stood behind
     */
    private record Refused(Map<String, Long> began, long lastNanos) {
        /** The topics that what stands behind must not write to. */
        Map<String, Long> held(long nanos) {
            Map<String, Long> held = new HashMap<>();
            if (nanos - lastNanos <= GAP_NANOS) {
                began.forEach((topic, at) -> {
                    if (nanos - at <= CHAIN_NANOS) {
                        held.put(topic, at);
                    }
                });
            }
            return held;
        }
    }

    private final Map<String, Refused> byConnection = new ConcurrentHashMap<>();
    private volatile boolean any;

    /** Whether any request was refused lately: where none was, a request asks nothing more. */
    boolean any() {
        return any;
    }

    /** A request on this connection is refused, for a reason of its own. */
    void refused(String connection, Set<String> topics, long nanos) {
        Refused before = byConnection.get(connection);
        Map<String, Long> held = before == null ? new HashMap<>() : before.held(nanos);
        topics.forEach(topic -> held.put(topic, nanos));
        byConnection.put(connection, new Refused(held, nanos));
        any = true;
    }

    /** Whether a request on this connection that writes to these topics has to be refused because of an earlier one. */
    boolean refuses(String connection, Set<String> topics, long nanos) {
        Refused refused = byConnection.get(connection);
        if (refused == null) {
            return false;
        }
        Map<String, Long> held = refused.held(nanos);
        // The clock may overflow: what began last is what is least long ago.
        long least = Long.MAX_VALUE;
        for (String topic : topics) {
            Long at = held.get(topic);
            least = at == null ? least : Math.min(least, nanos - at);
        }
        if (least == Long.MAX_VALUE) {
            return false;
        }
        long began = nanos - least;
        topics.forEach(topic -> held.merge(topic, began, (one, other) -> nanos - one < nanos - other ? one : other));
        byConnection.put(connection, new Refused(held, nanos));
        return true;
    }

    /** Of how many connections it knows. */
    int connections() {
        return byConnection.size();
    }

    /** Forgets what is over. Not for request threads. */
    void keep(long nanos) {
        if (any) {
            byConnection.values().removeIf(refused -> nanos - refused.lastNanos > KEPT_NANOS);
            any = !byConnection.isEmpty();
            // One that came in between.
            if (!byConnection.isEmpty()) {
                any = true;
            }
        }
    }
}
