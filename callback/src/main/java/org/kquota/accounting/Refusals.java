package org.kquota.accounting;

import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;

/** How many produce requests of each client were refused. Bounded: clients beyond the bound are counted together. Waits for no other thread. */
public final class Refusals {
    private static final int MAX_CLIENTS = 1_000;
    private static final int MAX_LENGTH = 256;
    private static final Client OTHERS = new Client("<others>", "");

    private final ConcurrentHashMap<Client, LongAdder> counts = new ConcurrentHashMap<>();

    /** A client as Type:name and client id, or all those that are counted together. */
    public record Client(String principal, String clientId) {
    }

    /** A client, as Type:name and client id, and its requests refused since the broker started. */
    public record Count(String principal, String clientId, long requests) {
    }

    /** One request of this client was refused. */
    public void count(String principal, String clientId) {
        Client client = new Client(cut(principal), cut(clientId == null ? "" : clientId));
        LongAdder count = counts.get(client);
        if (count == null) {
            count = counts.computeIfAbsent(counts.size() < MAX_CLIENTS ? client : OTHERS, key -> new LongAdder());
        }
        count.increment();
    }

    private static String cut(String text) {
        return text.length() <= MAX_LENGTH ? text : text.substring(0, MAX_LENGTH);
    }

    /** The clients that were ever refused, and their counts, which go on. */
    public Map<Client, LongAdder> byClient() {
        return Collections.unmodifiableMap(counts);
    }

    /** The clients refused most often, the first being the worst. */
    public List<Count> top(int most) {
        return counts.entrySet().stream()
            .map(entry -> new Count(entry.getKey().principal(), entry.getKey().clientId(), entry.getValue().sum()))
            .sorted(Comparator.comparingLong(Count::requests).reversed().thenComparing(Count::principal).thenComparing(Count::clientId))
            .limit(most).toList();
    }
}
