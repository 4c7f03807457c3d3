package org.kquota;

import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.kquota.config.KquotaConfig;
import org.kquota.decision.BootClock;
import org.kquota.fence.AllowAll;
import org.kquota.fence.DelegatingAuthorizer;
import org.kquota.fence.Fence;
import org.kquota.fence.NoopPluginMetrics;
import org.kquota.node.BrokerNode;
import org.kquota.node.Nodes;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;

import java.io.IOException;
import java.util.List;
import java.util.Map;

/**
 * The fence, for Kafka 4.0, which has no place for metrics of an authorizer: <code>authorizer.class.name=org.kquota.AuthorizerWithoutMetrics</code>.
 * {@link KquotaAuthorizer} passes them on. It leaves every question to the cluster's own
 * authorizer. In PAUSE it refuses all produce requests, in THROTTLE those beyond the target, before anything is appended, with an error that
 * clients retry without informing the application.
 *
 * <p>The only exception of its own is that refusal. A fault inside is counted, the cluster's authorizer
 * decides, and the governor holds the request.
 */
public class AuthorizerWithoutMetrics extends DelegatingAuthorizer {
    /**
     * Set on a request thread while Kafka handles a refusal: logging can distinguish by it the line that Kafka writes for each one
     * from an error.
     */
    static final String LOG_CONTEXT_KEY = "kquota";
    static final String LOG_CONTEXT_REFUSED = "refused";
    private static final Logger LOG = LoggerFactory.getLogger(KquotaConfig.AUTHORIZER);

    private BrokerNode node;
    /** Null on a node that serves no producers. */
    private volatile Fence fence;

    @Override
    public void configure(Map<String, ?> properties) {
        KquotaConfig config = new KquotaConfig(properties);
        Authorizer own = config.fencedAuthorizer().map(className -> newInstance(KquotaConfig.FENCE_AUTHORIZER_CLASS, className))
            .orElseGet(AllowAll::new);
        delegateTo(own);
        super.configure(properties);
        giveMetrics(own);
        if (config.isBroker()) {
            config.requireCallback(CallbackWithoutMetrics.class);
            node = Nodes.acquire(config, new BootClock());
            node.fence().install();
            fence = node.fence();
            LOG.info("the fence is installed on broker {}: produce requests are refused in PAUSE, and in THROTTLE beyond the target; all else is left to {}", config.nodeId(),
                own.getClass().getName());
        }
    }

    private void giveMetrics(Authorizer own) {
        try {
            NoopPluginMetrics.give(own, this);
        } catch (NoClassDefFoundError e) {
            LOG.debug("this Kafka has no metrics of authorizers, and its authorizers need none", e);
        }
    }

    @Override
    public final List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        Fence asked = fence;
        if (asked == null) {
            return super.authorize(context, actions);
        }
        forgetRefusal();
        List<AuthorizationResult> results = super.authorize(context, actions);
        String refusal = refusal(asked, context, actions, results);
        if (refusal != null) {
            // It has no stack trace, as all of Kafka's errors for clients.
            throw new NotEnoughReplicasException(refusal);
        }
        return results;
    }

    private String refusal(Fence asked, AuthorizableRequestContext context, List<Action> actions, List<AuthorizationResult> results) {
        try {
            String refusal = whyRefused(asked, context, actions, results);
            if (refusal != null) {
                MDC.put(LOG_CONTEXT_KEY, LOG_CONTEXT_REFUSED);
            }
            return refusal;
        } catch (Throwable e) {
            asked.fault(e);
            return null;
        }
    }

    String whyRefused(Fence asked, AuthorizableRequestContext context, List<Action> actions, List<AuthorizationResult> results) {
        return asked.refusal(context, actions, results);
    }

    /** This thread may have refused its last request; now it handles another one. */
    private static void forgetRefusal() {
        try {
            if (MDC.get(LOG_CONTEXT_KEY) != null) {
                MDC.remove(LOG_CONTEXT_KEY);
            }
        } catch (RuntimeException e) {
            // Only the log is at stake.
        }
    }

    @Override
    public void close() throws IOException {
        BrokerNode held = node;
        if (held != null) {
            node = null;
            fence = null;
            held.fence().remove();
            Nodes.release(held);
        }
        super.close();
    }
}
