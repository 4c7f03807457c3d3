package org.kquota;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Reconfigurable;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.kquota.config.KquotaConfig;
import org.kquota.decision.BootClock;
import org.kquota.decision.EffectiveDecision;
import org.kquota.error.Errors;
import org.kquota.metering.LastLimits;
import org.kquota.node.BrokerNode;
import org.kquota.node.Nodes;
import org.kquota.node.ResetFlags;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The broker plug-in without metrics of its own, for Kafka 4.0, which has no place for them:
 * <code>client.quota.callback.class=org.kquota.CallbackWithoutMetrics</code>. {@link KquotaCallback} adds them. It keeps the quotas that were
 * set with the standard tools as they are, and holds producers back while the local agent's decision requires it.
 *
 * <p>No exception leaves it and no request thread waits in it: errors are counted, and the last safe value is
 * used, so that an error never lifts a pause.
 *
 * <p>The broker closes it when it stops, and closes only what is {@link AutoCloseable}, which a ClientQuotaCallback is not by itself.
 */
public class CallbackWithoutMetrics implements ClientQuotaCallback, Reconfigurable, AutoCloseable {
    private static final int MAX_REMEMBERED = 5_000;

    private final BootClock bootClock;
    private final ResetFlags resetFlags = new ResetFlags();
    private final LastLimits lastLimits = new LastLimits(MAX_REMEMBERED);
    private final AtomicBoolean closed = new AtomicBoolean();
    private volatile BrokerNode node;
    private volatile EffectiveDecision knownExpired;

    /** As the broker builds it. */
    public CallbackWithoutMetrics() {
        this(new BootClock());
    }

    /** With another clock for the lease. */
    CallbackWithoutMetrics(BootClock bootClock) {
        this.bootClock = bootClock;
    }

    @Override
    public void configure(Map<String, ?> properties) {
        KquotaConfig config = new KquotaConfig(properties);
        BrokerNode acquired = Nodes.acquire(config, bootClock);
        acquired.join(resetFlags);
        node = acquired;
    }

    @Override
    public final Map<String, String> quotaMetricTags(ClientQuotaType type, KafkaPrincipal principal, String clientId) {
        try {
            return tags(type, principal, clientId);
        } catch (Throwable e) {
            node.errors().count(Errors.Kind.REQUEST, e);
            return node.quotas().safeTags(type);
        }
    }

    Map<String, String> tags(ClientQuotaType type, KafkaPrincipal principal, String clientId) {
        return node.quotas().tags(type, principal, clientId);
    }

    @Override
    public final Double quotaLimit(ClientQuotaType type, Map<String, String> tags) {
        try {
            Double limit = limit(type, tags);
            lastLimits.remember(type, tags, limit);
            return limit;
        } catch (Throwable e) {
            node.errors().count(Errors.Kind.REQUEST, e);
            return lastSafeLimit(type, tags);
        }
    }

    Double limit(ClientQuotaType type, Map<String, String> tags) {
        return node.quotas().limit(type, tags);
    }

    private Double lastSafeLimit(ClientQuotaType type, Map<String, String> tags) {
        Double last = lastLimits.find(type, tags);
        Double safe = node.quotas().safeLimit(type);
        if (last == null || safe == null) {
            return last == null ? safe : last;
        }
        return Math.min(last, safe);
    }

    @Override
    public final boolean quotaResetRequired(ClientQuotaType type) {
        try {
            return resetRequired(type);
        } catch (Throwable e) {
            node.errors().count(Errors.Kind.REQUEST, e);
            return false;
        }
    }

    boolean resetRequired(ClientQuotaType type) {
        return resetFlags.take(type) || (type == ClientQuotaType.PRODUCE && leaseJustRanOut());
    }

    /**
     * True once for a lease that ran out without the decision thread having noticed yet, or ever. Each request asks for its
     * tags first, and so finds out; to look at the clock once more would cost more than all the rest.
     */
    private boolean leaseJustRanOut() {
        EffectiveDecision expired = node.quotas().decision().expired();
        if (expired == knownExpired) {
            return false;
        }
        knownExpired = expired;
        return true;
    }

    @Override
    public final void updateQuota(ClientQuotaType type, ClientQuotaEntity entity, double newValue) {
        onMetadataThread(Errors.Kind.QUOTA_UPDATE, () -> node.update(type, entity, newValue));
    }

    @Override
    public final void removeQuota(ClientQuotaType type, ClientQuotaEntity entity) {
        onMetadataThread(Errors.Kind.QUOTA_UPDATE, () -> node.remove(type, entity));
    }

    @Override
    @SuppressWarnings("removal") // announced in 4.4, by KIP-1200
    public final boolean updateClusterMetadata(Cluster cluster) {
        onMetadataThread(Errors.Kind.METADATA, () -> node.metadata(cluster));
        // The reset flags report changed limits: a node with both roles has two instances, which share the changes.
        return false;
    }

    private void onMetadataThread(Errors.Kind kind, Runnable task) {
        try {
            task.run();
        } catch (RuntimeException | Error e) {
            node.errors().count(kind, e);
        }
        node.logFaultsWithoutThreads();
    }

    @Override
    public Set<String> reconfigurableConfigs() {
        return node.liveProperties().keys();
    }

    @Override
    public void validateReconfiguration(Map<String, ?> properties) {
        node.liveProperties().validate(properties);
    }

    @Override
    public void reconfigure(Map<String, ?> properties) {
        node.liveProperties().take(properties);
    }

    /** The node, once this is configured. */
    final BrokerNode node() {
        return node;
    }

    /** The broker is about to close the metrics. */
    void forgetMetrics() {
    }

    /** docs/architecture.md lists what remains after this. Requests in flight get the last decision, until its lease runs out. */
    @Override
    public void close() {
        BrokerNode held = node;
        if (held != null && !closed.getAndSet(true)) {
            held.leave(resetFlags);
            forgetMetrics();
            Nodes.release(held);
        }
    }
}
