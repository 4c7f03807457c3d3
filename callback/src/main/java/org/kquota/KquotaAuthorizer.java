package org.kquota;

import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;

/** The fence: <code>authorizer.class.name=org.kquota.KquotaAuthorizer</code>. The cluster's own authorizer has its metrics, as Kafka gives them from 4.1 on. */
public class KquotaAuthorizer extends AuthorizerWithoutMetrics implements Monitorable {
    @Override
    public void withPluginMetrics(PluginMetrics metrics) {
        if (delegate() instanceof Monitorable monitorable) {
            monitorable.withPluginMetrics(metrics);
        }
    }
}
