package org.kquota.accounting;

import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;

/**
 * How many produce requests of each client were refused. Bounded: clients beyond the bound are counted together. Those refused longest ago make
 * room, so that no client can hide the others behind client ids that it makes up. To count waits for no other thread.
 */
public final class Refusals {
    private static final int MAX_CLIENTS = 1_000;
    private static final int MADE_ROOM = MAX_CLIENTS / 10;
    private static final int MAX_LENGTH = 256;
    private static final Client OTHERS = new Client("<others>", "");

    private final ConcurrentHashMap<Client, Tally> counts = new ConcurrentHashMap<>();
    /** How often room was looked for; the time of this table. */
    private volatile long round;

    private static final class Tally {
        private final LongAdder requests = new LongAdder();
        private volatile long lastRound;
    }

    /** A client as Type:name and client id, or all those that are counted together. */
    public record Client(String principal, String clientId) {
    }

    /** A client, as Type:name and client id, and its requests refused since it is counted apart. */
    public record Count(String principal, String clientId, long requests) {
    }

    /** One request of this client was refused. */
    public void count(String principal, String clientId) {
        Client client = new Client(cut(principal), cut(clientId == null ? "" : clientId));
        Tally tally = counts.get(client);
        if (tally == null) {
            tally = counts.computeIfAbsent(counts.size() < MAX_CLIENTS ? client : OTHERS, key -> new Tally());
        }
        tally.requests.increment();
        if (tally.lastRound != round) {
            tally.lastRound = round;
        }
    }

    /** Forgets a tenth of the clients, those refused longest ago, where there is no room for further ones; on the reporter's thread. */
    public void makeRoom() {
        round++;
        if (counts.size() < MAX_CLIENTS) {
            return;
        }
        record Aged(Client client, long lastRound, long requests) {
        }
        List<Aged> oldest = counts.entrySet().stream().filter(entry -> !entry.getKey().equals(OTHERS))
            .map(entry -> new Aged(entry.getKey(), entry.getValue().lastRound, entry.getValue().requests.sum()))
            .sorted(Comparator.comparingLong(Aged::lastRound).thenComparing(Aged::requests))
            .limit(MADE_ROOM).toList();
        // Their requests are not added to the others': who compares two reports would count them twice.
        oldest.forEach(one -> counts.remove(one.client()));
    }

    private static String cut(String text) {
        return text.length() <= MAX_LENGTH ? text : text.substring(0, MAX_LENGTH);
    }

    /** The clients with a line of their own, and the others as one. */
    public Set<Client> clients() {
        return Collections.unmodifiableSet(counts.keySet());
    }

    /** The requests of such a client that were refused; 0 where it has no line any more. */
    public long requests(Client client) {
        Tally tally = counts.get(client);
        return tally == null ? 0 : tally.requests.sum();
    }

    /** The clients refused most often, the first being the worst. */
    public List<Count> top(int most) {
        return counts.entrySet().stream()
            .map(entry -> new Count(entry.getKey().principal(), entry.getKey().clientId(), entry.getValue().requests.sum()))
            .sorted(Comparator.comparingLong(Count::requests).reversed().thenComparing(Count::principal).thenComparing(Count::clientId))
            .limit(most).toList();
    }
}
