package org.kquota.fence;

import static org.kquota.error.PluginLog.LOG;

import org.kquota.quota.Tags;

import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The agents' principals that have produced more than their quota, each until its bytes are paid for. The broker delays the next request of a connection once it has
 * appended one, so a client that makes a connection for each request is never delayed: its principal is refused here for as long as the broker would delay one connection.
 *
 * <p>One thread looks, ten times a second; request threads ask.
 */
public final class AgentDebts {
    /** When each is out of debt, by its tag. */
    private final Map<String, Long> paidNanos = new ConcurrentHashMap<>();
    private volatile boolean any;

    /**
     * Looks at the rate of one exempt principal.
     *
     * @param tags          under which it is metered
     * @param rate          the broker's, in bytes per second
     * @param quota         of an agent, in bytes per second
     * @param windowSeconds the time that the rate is of
     */
    public void note(Map<String, String> tags, double rate, double quota, double windowSeconds, long nanos) {
        if (rate <= quota || !Tags.isAgent(tags)) {
            return;
        }
        // KIP-13: the time after which the bytes of the window would have come at no more than the quota.
        double seconds = windowSeconds * (rate - quota) / quota;
        long paid = nanos + (long) (seconds * 1e9);
        Long before = paidNanos.get(tags.get(Tags.USER));
        if (before == null || paid - before > 0) {
            paidNanos.put(tags.get(Tags.USER), paid);
            any = true;
        }
        if (before == null) {
            LOG.warn("{} has produced {} B/s, more than the quota of an agent, {} B/s: the fence refuses it for {} s. Is its key stolen?", tags.get(Tags.USER),
                String.format(Locale.ROOT, "%.0f", rate), String.format(Locale.ROOT, "%.0f", quota), String.format(Locale.ROOT, "%.1f", seconds));
        }
    }

    /** Whether any principal is in debt: where none is, a request asks nothing more. */
    boolean any() {
        return any;
    }

    /** Whether the principal that is metered under these tags is in debt; none is that is not exempt. */
    boolean owes(Map<String, String> exemptTags, long nanos) {
        Long paid = exemptTags == null ? null : paidNanos.get(exemptTags.get(Tags.USER));
        return paid != null && paid - nanos > 0;
    }

    /** Forgets who is out of debt; on the thread that looks. */
    public void keep(long nanos) {
        if (any && paidNanos.values().removeIf(paid -> paid - nanos <= 0)) {
            any = !paidNanos.isEmpty();
        }
    }

    /** Quotas may be others now. */
    public void forget() {
        paidNanos.clear();
        any = false;
    }
}
