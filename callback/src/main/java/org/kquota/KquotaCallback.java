package org.kquota;

import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.kquota.decision.BootClock;
import org.kquota.node.NodeMetrics;

/** The broker plug-in, with its metrics: <code>client.quota.callback.class=org.kquota.KquotaCallback</code>. Kafka has a place for them from 4.1 on. */
public class KquotaCallback extends CallbackWithoutMetrics implements Monitorable {
    private volatile PluginMetrics metrics;

    /** As the broker builds it. */
    public KquotaCallback() {
    }

    /** With another clock for the lease. */
    KquotaCallback(BootClock bootClock) {
        super(bootClock);
    }

    @Override
    public void withPluginMetrics(PluginMetrics ofBroker) {
        metrics = ofBroker;
        NodeMetrics.register(ofBroker, node());
        node().refusalMetrics().register(ofBroker, node().quotas().groups().all());
    }

    @Override
    void forgetMetrics() {
        node().refusalMetrics().forget(metrics);
    }
}
