package org.kquota.quota;

import org.kquota.quota.StockQuotas.Pair;

import java.util.Collection;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;

/**
 * The tag sets of one quota type. A broker without quotas records nothing per client; with a callback it always does,
 * so the number of tag sets without a quota is bounded: clients beyond the bound share one. Those with a quota are the
 * operator's choice and always have their own.
 */
public final class TagSets {
    private final Quotas quotas;
    private final int max;
    private final ConcurrentHashMap<Pair, TagSet> sets = new ConcurrentHashMap<>();
    private final TagSet overflow = new TagSet(Tags.OVERFLOW);
    /** How many of them have no quota, or a few more or less: it only shows when there is no more room. */
    private final AtomicInteger withoutQuota = new AtomicInteger();
    private volatile boolean counted = true;
    private volatile Queue<TagSet> watcher;

    public TagSets(Quotas quotas, int max) {
        this.quotas = quotas;
        this.max = max;
    }

    /** The tag set of a client; the same object for all clients that share a quota. */
    public TagSet of(String sanitizedUser, String clientId) {
        return of(quotas.meteredAs(sanitizedUser, clientId));
    }

    /** The tag set of the clients metered under this pair; the same object each time. */
    public TagSet of(Pair pair) {
        TagSet known = knownOrOverflow(pair);
        return known != null ? known : sets.computeIfAbsent(pair, this::make);
    }

    /** The tag set of the clients metered under this pair, or the one that clients beyond the bound share; null where they would get a new one. */
    public TagSet knownOrOverflow(Pair pair) {
        TagSet known = sets.get(pair);
        if (known != null) {
            return known;
        }
        return !hasQuota(pair) && withoutQuota.get() >= max ? overflow : null;
    }

    private boolean hasQuota(Pair pair) {
        return quotas.limit(pair.user(), pair.clientId()) != null;
    }

    /** Counts those without a quota, if that may have changed since; not for request threads. */
    public void recount() {
        if (!counted) {
            counted = true;
            withoutQuota.set((int) sets.keySet().stream().filter(pair -> !hasQuota(pair)).count());
        }
    }

    /** Others have a quota now; to be called after the change. */
    public void quotasChanged() {
        counted = false;
    }

    private TagSet make(Pair pair) {
        TagSet made = new TagSet(Tags.of(pair.user(), pair.clientId()));
        Queue<TagSet> watching = watcher;
        if (watching != null) {
            watching.add(made);
        }
        if (!hasQuota(pair)) {
            withoutQuota.incrementAndGet();
        }
        return made;
    }

    /** A queue of the tag sets that there are, into which each new one comes. To be called once, before requests come. */
    public Queue<TagSet> watch() {
        Queue<TagSet> queue = new ConcurrentLinkedQueue<>(sets.values());
        watcher = queue;
        return queue;
    }

    /** The tag set of these tags, or null. */
    public TagSet find(String user, String clientId) {
        return Tags.OVERFLOW.get(Tags.USER).equals(user) ? overflow : sets.get(new Pair(user, clientId));
    }

    public Collection<TagSet> all() {
        return sets.values();
    }

    public TagSet overflow() {
        return overflow;
    }

    public int size() {
        return sets.size();
    }

    /** Forgets those of them that no request used since that second; Kafka's own sensors live an hour. Returns whether there was any. */
    public boolean forgetUnusedSince(int seconds, Predicate<TagSet> those) {
        boolean any = sets.values().removeIf(set -> {
            boolean unused = set.lastTouchSeconds() < seconds && those.test(set);
            if (unused) {
                set.forget();
            }
            return unused;
        });
        if (any) {
            counted = false;
            recount();
        }
        return any;
    }
}
