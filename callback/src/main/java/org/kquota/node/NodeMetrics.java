package org.kquota.node;

import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.kquota.decision.EffectiveDecision;
import org.kquota.decision.Mode;

import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.Set;
import java.util.function.ToDoubleFunction;

/** The plug-in's metrics, as the broker's plug-in metrics API carries them. */
public enum NodeMetrics {
    STATE("state", "Decided state: 0 OPEN, 1 THROTTLE, 2 PAUSE.", node -> node.now().state().ordinal()),
    FACTOR("factor", "Throttle factor in [0, 1].", node -> node.now().factor()),
    SCOPE("scope", "Scope in force: 0 cluster, 1 topics.", node -> node.now().scope().ordinal()),
    TOPICS_AT_STAKE("topics-at-stake", "Topics that the decision pauses or throttles by name; 0 where the scope is the cluster.",
        node -> node.now().topicsAtStake()),
    ENFORCING("enforcing", "1 if the decision is enforced, 0 if it is only observed.",
        node -> node.now().mode() == Mode.ENFORCE ? 1 : 0),
    DECISION_LOST("decision-lost", "1 while there is no decision under a running lease.", node -> node.now().lost() == null ? 0 : 1),
    DECISION_KEPT("decision-kept", "1 while the last decision holds on although its lease is over, because the broker's own disks have room.",
        node -> node.now().kept() == null ? 0 : 1),
    LEASE_SECONDS("decision-lease-seconds", "Time until the decision's lease runs out, in seconds; 0 while the decision is lost.",
        node -> {
            EffectiveDecision now = node.now();
            return now.lost() == null ? Math.max(0, (now.deadlineNanos() - System.nanoTime()) / 1e9) : 0;
        }),
    AGE_SECONDS("decision-age-seconds", "Time since the decision in force was first seen, in seconds; 0 while the decision is lost.",
        BrokerNode::decisionAgeSeconds),
    ERRORS("errors-total", "Errors inside the plug-in since the broker started.", node -> node.errors().total()),
    TAG_SETS("tag-sets", "Metric tag sets kept apart, all quota types together.", node -> node.quotas().tagSetCount()),
    EXEMPT_ENTRIES("exempt-entries", "Principals and patterns in kquota.exempt.principals.", node -> node.config().exemptPrincipals().size()),
    EXEMPT_SEEN("exempt-principals-seen", "Exempt principals with a request in the last ten minutes.", node -> node.quotas().exemptSeen().size()),
    PRODUCE_RATE("produce-byte-rate", "Total rate of all producers that are not exempt, in bytes per second.",
        node -> node.figures().observedRate()),
    BASELINE_RATE("baseline-byte-rate", "Their total rate before they were throttled, in bytes per second.",
        node -> node.figures().baselineRate()),
    FENCE_INSTALLED("fence-installed", "1 if org.kquota.KquotaAuthorizer refuses produce requests in THROTTLE and PAUSE.",
        node -> node.fence().installed() ? 1 : 0),
    FENCE_REFUSALS("fence-refusals-total", "Produce requests refused in THROTTLE and PAUSE since the broker started.", node -> node.fence().refusals()),
    STARVING("starving-clients", "Clients that THROTTLE gives a turn less than once in 120 s, the time for which producers keep a record by default.",
        node -> node.quotas().admission().starving()),
    THRESHOLD_REFUSALS("threshold-refusals-total", "Produce requests refused since the broker started because a topic was over its threshold.",
        node -> node.thresholds().gate().refusals()),
    TOPICS_OVER("topics-over-threshold", "Topics over their thresholds while the broker is over its own: they take nothing in if kquota.mode is enforce and the fence is installed.", node -> node.thresholds().gate().over().size()),
    POOL_LIMIT("pool-limit-byte-rate", "Limit of the clients' shared pool in THROTTLE and PAUSE, in bytes per second; 0 in OPEN.",
        node -> node.figures().poolLimit() == null ? 0 : node.figures().poolLimit());

    private final String metricName;
    private final String description;
    private final ToDoubleFunction<BrokerNode> value;

    NodeMetrics(String metricName, String description, ToDoubleFunction<BrokerNode> value) {
        this.metricName = metricName;
        this.description = description;
        this.value = value;
    }

    public String metricName() {
        return metricName;
    }

    public String description() {
        return description;
    }

    /** The metrics of a controller-only node: it serves quotas, and no decision holds there. */
    private static final Set<NodeMetrics> OF_CONTROLLERS = EnumSet.of(ERRORS, TAG_SETS);

    /** Registers those that the node has; it adds its own tags and removes them with the plug-in. */
    public static void register(PluginMetrics metrics, BrokerNode node) {
        for (NodeMetrics metric : node.config().isBroker() ? EnumSet.allOf(NodeMetrics.class) : OF_CONTROLLERS) {
            metrics.addMetric(metrics.metricName(metric.metricName, metric.description, new LinkedHashMap<>()),
                (Gauge<Double>) (config, now) -> metric.value.applyAsDouble(node));
        }
    }
}
