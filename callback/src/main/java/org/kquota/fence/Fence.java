package org.kquota.fence;

import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.kquota.accounting.Refusals;
import org.kquota.decision.EffectiveDecision;
import org.kquota.decision.Mode;
import org.kquota.decision.State;
import org.kquota.error.Errors;
import org.kquota.group.Group;
import org.kquota.metering.NodeQuotas;
import org.kquota.quota.TagSet;
import org.kquota.threshold.Thresholds;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;

/**
 * Which requests are refused: in PAUSE all, in THROTTLE those beyond the target, where the scope is topics those that write to topics at stake, and those to
 * topics over their thresholds; in all states those of agents that have produced more than their quota. For the node's authorizers.
 * Request threads ask; nothing here waits, and nothing does I/O.
 */
public final class Fence {
    /** For this long after a fault of the fence, the governor holds producers as if there were none. */
    private static final long MISTRUST_NANOS = 60_000_000_000L;
    private static final String PAUSED = "kquota: producers are paused, because a disk of the cluster is too full";
    private static final String THROTTLED = "kquota: producers are slowed down, because a disk of the cluster is filling; this request has to wait";
    private static final String OVER_QUOTA = "kquota: this agent has produced more than its quota on this broker";
    private static final String BEHIND = "kquota: an earlier request of this connection was refused, and its records come first";

    private final NodeQuotas quotas;
    private final Errors errors;
    private final AtomicInteger authorizers = new AtomicInteger();
    private final LongAdder refusals = new LongAdder();
    private final Refusals refused = new Refusals();
    private final Thresholds thresholds;
    private final RequestsUnderWay underWay = new RequestsUnderWay();
    private final AgentDebts debts = new AgentDebts();
    private final Runnable whenFaulted;
    private final LongSupplier nanoTime;
    private volatile boolean faulted;
    private volatile long lastFaultNanos;

    /**
     * @param whenFaulted called after a fault: others hold producers from then on
     * @param nanoTime    the clock, as System.nanoTime()
     */
    public Fence(NodeQuotas quotas, Thresholds thresholds, Errors errors, Runnable whenFaulted, LongSupplier nanoTime) {
        this.quotas = quotas;
        this.thresholds = thresholds;
        this.errors = errors;
        this.whenFaulted = whenFaulted;
        this.nanoTime = nanoTime;
    }

    /** One more authorizer of this node asks the fence. */
    public void install() {
        authorizers.incrementAndGet();
    }

    public void remove() {
        authorizers.decrementAndGet();
    }

    public boolean installed() {
        return authorizers.get() > 0;
    }

    /** Whether others can rely on it: it is installed, and has had no fault lately. */
    public boolean reliable() {
        return installed() && !(faulted && nanoTime.getAsLong() - lastFaultNanos < MISTRUST_NANOS);
    }

    /** Produce requests refused in THROTTLE and in PAUSE since the broker started. */
    public long refusals() {
        return refusals.sum();
    }

    /** How often each client was refused, for any reason. */
    public Refusals refused() {
        return refused;
    }

    /** The agents that have produced more than their quota. */
    public AgentDebts debts() {
        return debts;
    }

    /** Something in the fence went wrong; the request went on. */
    public void fault(Throwable thrown) {
        lastFaultNanos = nanoTime.getAsLong();
        faulted = true;
        whenFaulted.run();
        errors.count(Errors.Kind.FENCE, thrown);
    }

    /**
     * Why this request must not be appended now, for the refusal, or null: a produce request of a principal that is not
     * exempt, which would write to a topic of clients that is paused, or to one that is throttled while it is not its turn, or to one that is over its threshold, or that
     * was under way when an earlier one of its connection was refused; and one of an agent that has produced more than its quota.
     *
     * @param results the answers of the cluster's own authorizer: a client that it denies gets that answer, in a pause too
     */
    public String refusal(AuthorizableRequestContext context, List<Action> actions, List<AuthorizationResult> results) {
        if (context.requestType() != ApiKeys.PRODUCE.id) {
            return null;
        }
        String refusal = judge(context, actions, results);
        if (refusal != null && !refusal.equals(BEHIND) && context instanceof RequestContext request) {
            underWay.refused(request.connectionId(), written(actions, results), nanoTime.getAsLong());
        }
        return refusal;
    }

    /** The refusal of a request that nothing else keeps out, if it was under way behind a refused one. */
    private String behind(AuthorizableRequestContext context, List<Action> actions, List<AuthorizationResult> results) {
        if (!underWay.any() || !(context instanceof RequestContext request)
            || !underWay.refuses(request.connectionId(), written(actions, results), nanoTime.getAsLong())) {
            return null;
        }
        return held(context, BEHIND);
    }

    /** Once in a while, not on request threads. */
    public void keep(long nanos) {
        underWay.keep(nanos);
    }

    private String judge(AuthorizableRequestContext context, List<Action> actions, List<AuthorizationResult> results) {
        EffectiveDecision decision = quotas.decision().expireIfDue();
        if (decision.state() != State.OPEN) {
            // So that others can judge the scopes; in OPEN a request pays nothing for it.
            quotas.noteTopics(context.principal(), context.clientId(), written(actions, results));
        }
        if (debts.any() && decision.mode() == Mode.ENFORCE && debts.owes(quotas.exemptTags(context.principal()), nanoTime.getAsLong())
            && !written(actions, results).isEmpty()) {
            account(context);
            return OVER_QUOTA;
        }
        boolean isOpen = decision.enforced() == State.OPEN;
        if (isOpen && !thresholds.gate().isClosedForSome()) {
            return behind(context, actions, results);
        }
        // Among the topics that it would write to, the worst factor decides.
        double worst = 1;
        for (int i = 0; i < actions.size(); i++) {
            Action action = actions.get(i);
            String topic = action.resourcePattern().name();
            double factor = isOpen ? 1 : decision.factor(topic);
            boolean isOver = factor > 0 && thresholds.isClosedFor(topic);
            // These first: requests to topics that are neither at stake nor over ask nothing more.
            if (factor == 1 && !isOver || !isWritten(action, results.get(i))) {
                continue;
            }
            if ((factor == 0 || isOver) && !quotas.isExempt(context.principal())) {
                return isOver ? over(context, topic) : paused(context, decision, topic);
            }
            worst = Math.min(worst, factor);
        }
        TagSet tagSet = worst < 1 && quotas.admission().inForce() ? quotas.admitted(context.principal(), context.clientId(), worst) : null;
        // Before its turn is asked for: it may have come since the earlier request was refused.
        String behind = behind(context, actions, results);
        if (tagSet == null) {
            return behind;
        }
        if (behind != null) {
            quotas.admission().waits(tagSet.share(), nanoTime.getAsLong());
            return behind;
        }
        return quotas.admission().admits(tagSet.share(), worst, nanoTime.getAsLong()) ? null : held(context, THROTTLED);
    }

    /** The topics of clients that it would append to. */
    private static Set<String> written(List<Action> actions, List<AuthorizationResult> results) {
        Set<String> topics = new LinkedHashSet<>();
        for (int i = 0; i < actions.size(); i++) {
            if (isWritten(actions.get(i), results.get(i))) {
                topics.add(actions.get(i).resourcePattern().name());
            }
        }
        return topics;
    }

    private String over(AuthorizableRequestContext context, String topic) {
        account(context);
        thresholds.gate().refused(topic);
        return "kquota: topic " + topic + " is over its threshold of bytes in";
    }

    private String paused(AuthorizableRequestContext context, EffectiveDecision decision, String topic) {
        account(context);
        quotas.paused(context.principal(), context.clientId());
        refusals.increment();
        return decision.names(topic) ? "kquota: topic " + topic + " is on a disk that is too full; producers to it are paused" : PAUSED;
    }

    private String held(AuthorizableRequestContext context, String refusal) {
        account(context);
        refusals.increment();
        return refusal;
    }

    private void account(AuthorizableRequestContext context) {
        refused.count(context.principal().toString(), context.clientId());
        Group group = quotas.group(context.principal(), context.clientId());
        if (group != null) {
            group.refused();
        }
    }

    /** Whether this action would append to a topic of clients. */
    private static boolean isWritten(Action action, AuthorizationResult result) {
        return action.operation() == AclOperation.WRITE && action.resourcePattern().resourceType() == ResourceType.TOPIC
            && result == AuthorizationResult.ALLOWED && !Thresholds.INTERNAL_TOPICS.contains(action.resourcePattern().name());
    }
}
