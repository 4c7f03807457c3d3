package org.kquota.fence;

import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.kquota.accounting.Refusals;
import org.kquota.admission.LandedBytes;
import org.kquota.decision.EffectiveDecision;
import org.kquota.decision.State;
import org.kquota.error.Errors;
import org.kquota.group.Group;
import org.kquota.metering.NodeQuotas;
import org.kquota.quota.TagSet;
import org.kquota.threshold.Thresholds;
import org.kquota.threshold.TopicGate;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/**
 * Which requests are refused: in PAUSE all, in THROTTLE those beyond the target, and those to topics over their thresholds. For the node's authorizers.
 * Request threads ask; nothing here waits, and nothing does I/O.
 */
public final class Fence {
    /** For this long after a fault of the fence, the governor holds producers as if there were none. */
    private static final long MISTRUST_NANOS = 60_000_000_000L;
    private static final String PAUSED = "kquota: producers are paused, because a disk of the cluster is too full";
    private static final String THROTTLED = "kquota: producers are slowed down, because a disk of the cluster is filling; this request has to wait";

    private final NodeQuotas quotas;
    private final Errors errors;
    private final AtomicInteger authorizers = new AtomicInteger();
    private final LongAdder refusals = new LongAdder();
    private final Refusals refused = new Refusals();
    private final Thresholds thresholds;
    private final LandedBytes landed;
    private volatile boolean faulted;
    private volatile long lastFaultNanos;

    /** @param landed what has landed by the broker's own counter */
    public Fence(NodeQuotas quotas, Thresholds thresholds, LandedBytes landed, Errors errors) {
        this.quotas = quotas;
        this.thresholds = thresholds;
        this.landed = landed;
        this.errors = errors;
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
        return installed() && !(faulted && System.nanoTime() - lastFaultNanos < MISTRUST_NANOS);
    }

    /** Produce requests refused in THROTTLE and in PAUSE since the broker started. */
    public long refusals() {
        return refusals.sum();
    }

    /** How often each client was refused, for any reason. */
    public Refusals refused() {
        return refused;
    }

    /** Something in the fence went wrong; the request went on. */
    public void fault(Throwable thrown) {
        lastFaultNanos = System.nanoTime();
        faulted = true;
        errors.count(Errors.Kind.FENCE, thrown);
    }

    /**
     * Why this request must not be appended now, for the refusal, or null: a produce request of a principal that is not
     * exempt, which would write to a topic of clients while PAUSE is enforced, or while THROTTLE is and it is not its turn, or to one that is over its threshold.
     *
     * @param results the answers of the cluster's own authorizer: a client that it denies gets that answer, in a pause too
     */
    public String refusal(AuthorizableRequestContext context, List<Action> actions, List<AuthorizationResult> results) {
        if (context.requestType() != ApiKeys.PRODUCE.id) {
            return null;
        }
        EffectiveDecision decision = quotas.decision().expireIfDue();
        State state = decision.enforced();
        TopicGate gate = thresholds.gate();
        if (state == State.OPEN && !gate.isClosedForSome()) {
            return null;
        }
        boolean paused = state == State.PAUSE;
        for (int i = 0; i < actions.size(); i++) {
            Action action = actions.get(i);
            String topic = action.resourcePattern().name();
            // The gate first: while it is closed for a few topics, requests to all the others ask nothing more.
            if (!paused && !thresholds.isClosedFor(topic) || !isWritten(action, results.get(i)) || quotas.isExempt(context.principal())) {
                continue;
            }
            account(context);
            if (paused) {
                refusals.increment();
                return PAUSED;
            }
            gate.refused(topic);
            return "kquota: topic " + topic + " is over its threshold of bytes in";
        }
        return state == State.THROTTLE && mustWait(context, actions, results, topic -> decision.factor()) ? throttled(context) : null;
    }

    /**
     * Whether it is not this request's turn. The worst factor among the topics that it would write to decides whether it has to have one.
     */
    private boolean mustWait(AuthorizableRequestContext context, List<Action> actions, List<AuthorizationResult> results, TopicFactors factors) {
        if (!quotas.admission().inForce()) {
            return false;
        }
        double worst = 1;
        for (int i = 0; i < actions.size(); i++) {
            if (isWritten(actions.get(i), results.get(i))) {
                worst = Math.min(worst, factors.of(actions.get(i).resourcePattern().name()));
            }
        }
        TagSet tagSet = worst < 1 ? quotas.admitted(context.principal(), context.clientId()) : null;
        return tagSet != null && !quotas.admission().admits(tagSet.claim(), landed.bytes(), System.nanoTime());
    }

    private String throttled(AuthorizableRequestContext context) {
        account(context);
        refusals.increment();
        return THROTTLED;
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
