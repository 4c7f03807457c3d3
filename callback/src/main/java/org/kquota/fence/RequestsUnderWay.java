package org.kquota.fence;

import java.util.HashSet;
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
    /** A client of very many partitions would otherwise have all of them refused for the sake of one another. */
    private static final long CHAIN_NANOS = 250_000_000L;
    private static final long KEPT_NANOS = 1_000_000_000L;

    private record Refused(Set<String> topics, long beganNanos, long lastNanos) {
        boolean isOver(long nanos) {
            return nanos - lastNanos > GAP_NANOS || nanos - beganNanos > CHAIN_NANOS;
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
        byConnection.put(connection, new Refused(before == null || before.isOver(nanos) ? topics : union(before.topics, topics), nanos, nanos));
        any = true;
    }

    /** Whether a request on this connection that writes to these topics has to be refused because of an earlier one. */
    boolean refuses(String connection, Set<String> topics, long nanos) {
        Refused refused = byConnection.get(connection);
        if (refused == null || refused.isOver(nanos) || topics.stream().noneMatch(refused.topics::contains)) {
            return false;
        }
        byConnection.put(connection, new Refused(union(refused.topics, topics), refused.beganNanos, nanos));
        return true;
    }

    private static Set<String> union(Set<String> some, Set<String> others) {
        Set<String> all = new HashSet<>(some);
        all.addAll(others);
        return all;
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
