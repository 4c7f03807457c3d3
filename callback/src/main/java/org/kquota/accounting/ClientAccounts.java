package org.kquota.accounting;

import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;
import org.kquota.quota.Tags;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;

/**
 * Which clients produce on this broker, read from it or are held, and how much: an account for each set of metric tags, kept by the
 * broker's own metrics off the request path. Used by one thread.
 */
public final class ClientAccounts {
    /** Above this number of sets of tags, each further thousand adds a second between two looks. */
    private static final int SETS_PER_SECOND = 1_000;

    private final TagSets produceSets;
    private final List<TagSet> pools;
    private final TagSets fetchSets;
    private final Function<Map<String, String>, Double> produceLimit;
    private final Function<Map<String, String>, Double> fetchLimit;
    private final ClientMetrics produce = new ClientMetrics("Produce");
    private final ClientMetrics fetch = new ClientMetrics("Fetch");
    private final Map<Map<String, String>, Account> accounts = new HashMap<>();
    private double sinceLookSeconds;

    /**
     * The use by one set of tags; rates and limits in bytes per second, null where there is no limit.
     *
     * @param producedBytes bytes produced since it has an account here, by the rates seen
     * @param fetchedBytes  bytes read by consumers since then, likewise
     * @param heldSeconds   for how long its rate was above its limit, so that its produce requests were delayed
     */
    public record Account(String user, String clientId, double producedBytes, double fetchedBytes, double heldSeconds, double produceRate,
                          double produceThrottleMs, Double produceLimit, double fetchRate, double fetchThrottleMs, Double fetchLimit) {
    }

    /**
     * @param pools        tag sets that clients share while they are held
     * @param produceLimit the limit in force of tags, or null
     */
    public ClientAccounts(TagSets produceSets, List<TagSet> pools, TagSets fetchSets, Function<Map<String, String>, Double> produceLimit,
                          Function<Map<String, String>, Double> fetchLimit) {
        this.produceSets = produceSets;
        this.pools = List.copyOf(pools);
        this.fetchSets = fetchSets;
        this.produceLimit = produceLimit;
        this.fetchLimit = fetchLimit;
    }

    /** Looks at the metrics, unless it is too early for that; this many seconds have passed since the last call. */
    public void look(double seconds) {
        sinceLookSeconds += seconds;
        int sets = produceSets.size() + fetchSets.size();
        if (sinceLookSeconds < 1 + sets / SETS_PER_SECOND - 0.5) {
            return;
        }
        Set<Map<String, String>> known = new LinkedHashSet<>();
        produceSets.all().forEach(set -> known.add(set.tags()));
        fetchSets.all().forEach(set -> known.add(set.tags()));
        pools.forEach(set -> known.add(set.tags()));
        known.add(Tags.OVERFLOW);
        accounts.keySet().retainAll(known);
        produce.keep(known);
        fetch.keep(known);
        known.forEach(tags -> accounts.put(tags, next(tags, accounts.get(tags))));
        sinceLookSeconds = 0;
    }

    private Account next(Map<String, String> tags, Account before) {
        ClientMetrics.Reading produced = produce.read(tags);
        ClientMetrics.Reading fetched = fetch.read(tags);
        Double limit = produceLimit.apply(tags);
        boolean held = limit != null && produced.bytesPerSecond() > limit;
        return new Account(tags.get(Tags.USER), tags.get(Tags.CLIENT_ID),
            (before == null ? 0 : before.producedBytes()) + produced.bytesPerSecond() * sinceLookSeconds,
            (before == null ? 0 : before.fetchedBytes()) + fetched.bytesPerSecond() * sinceLookSeconds,
            (before == null ? 0 : before.heldSeconds()) + (held ? sinceLookSeconds : 0),
            produced.bytesPerSecond(), produced.throttleMs(), limit, fetched.bytesPerSecond(), fetched.throttleMs(), fetchLimit.apply(tags));
    }

    /** How many names of MBeans are kept. */
    int names() {
        return produce.size() + fetch.size();
    }

    /** How many accounts there are. */
    public int size() {
        return accounts.size();
    }

    /** The account of these tags, or one of nothing where there is none. */
    public Account of(Map<String, String> tags) {
        Account account = accounts.get(tags);
        return account != null ? account : new Account(tags.get(Tags.USER), tags.get(Tags.CLIENT_ID), 0, 0, 0, 0, 0, null, 0, 0, null);
    }

    /** The accounts that matter: the largest by rate and by bytes, of both directions, and by time held; at most this many of each. */
    public List<Account> top(int most) {
        Set<Account> top = new LinkedHashSet<>();
        for (Comparator<Account> order : List.of(
                Comparator.comparingDouble(Account::produceRate), Comparator.comparingDouble(Account::producedBytes),
                Comparator.comparingDouble(Account::heldSeconds), Comparator.comparingDouble(Account::fetchRate),
                Comparator.comparingDouble(Account::fetchedBytes))) {
            accounts.values().stream().filter(account -> account.producedBytes() > 0 || account.fetchedBytes() > 0).sorted(order.reversed())
                .limit(most).forEach(top::add);
        }
        List<Account> sorted = new ArrayList<>(top);
        sorted.sort(Comparator.comparingDouble(Account::produceRate).thenComparingDouble(Account::producedBytes).reversed());
        return sorted;
    }
}
