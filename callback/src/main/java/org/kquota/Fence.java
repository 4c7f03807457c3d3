package org.kquota;

import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.kquota.decision.State;

import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/**
 * Which requests are refused in PAUSE, for the node's authorizers. Request threads ask; nothing here waits, and nothing
 * does I/O.
 */
final class Fence {
    /** For so long after a fault of the fence, the governor holds producers as if there were none. */
    private static final long MISTRUST_NANOS = 60_000_000_000L;
    /** Written by brokers themselves, and needed to free space. */
    private static final Set<String> INTERNAL_TOPICS =
        Set.of("__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata");

    private final NodeQuotas quotas;
    private final Errors errors;
    private final AtomicInteger authorizers = new AtomicInteger();
    private final LongAdder refusals = new LongAdder();
    private volatile boolean faulted;
    private volatile long lastFaultNanos;

    Fence(NodeQuotas quotas, Errors errors) {
        this.quotas = quotas;
        this.errors = errors;
    }

    /** One more authorizer of this node asks the fence. */
    void install() {
        authorizers.incrementAndGet();
    }

    void remove() {
        authorizers.decrementAndGet();
    }

    boolean installed() {
        return authorizers.get() > 0;
    }

    /** Whether a pause can rely on it: it is installed, and has had no fault lately. */
    boolean reliable() {
        return installed() && !(faulted && System.nanoTime() - lastFaultNanos < MISTRUST_NANOS);
    }

    /** Produce requests refused since the broker started. */
    long refusals() {
        return refusals.sum();
    }

    /** Something in the fence went wrong; the request went on. */
    void fault(Throwable thrown) {
        lastFaultNanos = System.nanoTime();
        faulted = true;
        errors.count(Errors.Kind.FENCE, thrown);
    }

    /**
     * Whether this request must not be appended now: a produce request of a principal that is not exempt, which would
     * write to a topic of clients, while PAUSE is enforced.
     *
     * @param results what the cluster's own authorizer says to each action: who is denied is told so, in a pause too
     */
    boolean refuses(AuthorizableRequestContext context, List<Action> actions, List<AuthorizationResult> results) {
        if (context.requestType() != ApiKeys.PRODUCE.id || quotas.now().enforced() != State.PAUSE
            || !wouldAppend(actions, results) || quotas.isExempt(context.principal())) {
            return false;
        }
        refusals.increment();
        return true;
    }

    private static boolean wouldAppend(List<Action> actions, List<AuthorizationResult> results) {
        for (int i = 0; i < actions.size(); i++) {
            Action action = actions.get(i);
            if (action.operation() == AclOperation.WRITE && action.resourcePattern().resourceType() == ResourceType.TOPIC
                && results.get(i) == AuthorizationResult.ALLOWED && !INTERNAL_TOPICS.contains(action.resourcePattern().name())) {
                return true;
            }
        }
        return false;
    }
}
