package org.kquota.bench;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

import java.net.InetAddress;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * A broker's own produce quotas, with some clients: each has a user and a client id of its own. The plug-in, where there
 * is one, is loaded by its name and reads a decision file, as in a broker.
 */
public final class ProduceQuotas implements AutoCloseable {
    /** The callback that meters. */
    public enum Kind {
        /** Stock, with no quota set: the broker meters no client. */
        STOCK_WITHOUT_QUOTAS(false, false),
        /** Stock, with a quota that no client reaches. */
        STOCK(false, true),
        /** The plug-in, with no quota set: it still meters all clients. */
        KQUOTA_WITHOUT_QUOTAS(true, false),
        /** The plug-in, with a quota that no client reaches. */
        KQUOTA(true, true);

        private final boolean pluggedIn;
        private final boolean quota;

        Kind(boolean pluggedIn, boolean quota) {
            this.pluggedIn = pluggedIn;
            this.quota = quota;
        }
    }

    private static final int WINDOWS = 11;
    private static final double UNREACHED_BYTES_PER_SECOND = 1e15;

    private final Metrics metrics;
    private final ClientQuotaManager quotas;
    private final ClientQuotaCallback callback;
    private final Session[] sessions;
    private final String[] clientIds;

    /**
     * @param directory where decision/decision.json is and applied/ is to be written; unused by stock quotas
     * @param tagSetsMax how many tag sets without a quota the plug-in keeps apart
     */
    ProduceQuotas(Kind kind, int clients, String directory, int tagSetsMax) throws ReflectiveOperationException {
        // As a broker has them: the plug-in reads rates over JMX.
        metrics = new Metrics(new MetricConfig(), List.of(new JmxReporter()), Time.SYSTEM, new KafkaMetricsContext("kafka.server"));
        callback = kind.pluggedIn ? plugIn(directory, tagSetsMax) : null;
        quotas = new ClientQuotaManager(new ClientQuotaManagerConfig(WINDOWS, 1), metrics, QuotaType.PRODUCE, Time.SYSTEM, "bench",
            Optional.ofNullable(callback).map(it -> Plugin.wrapInstance(it, metrics, "client.quota.callback.class", "role", "broker")));
        if (kind.quota) {
            quotas.updateQuota(Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY), Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID),
                Optional.of(new Quota(UNREACHED_BYTES_PER_SECOND, true)));
        }
        sessions = new Session[clients];
        clientIds = new String[clients];
        for (int i = 0; i < clients; i++) {
            sessions[i] = new Session(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, "user-" + i), InetAddress.getLoopbackAddress());
            clientIds[i] = "client-" + i;
            record(i, 1);
        }
    }

    private static ClientQuotaCallback plugIn(String directory, int tagSetsMax) throws ReflectiveOperationException {
        ClientQuotaCallback made = (ClientQuotaCallback) Class.forName("org.kquota.KquotaCallback").getDeclaredConstructor().newInstance();
        made.configure(Map.of(
            "node.id", "1",
            "process.roles", "broker",
            "kquota.mode", "enforce",
            "kquota.decision.file", directory + "/decision/decision.json",
            "kquota.applied.file", directory + "/applied/applied.json",
            "kquota.exempt.principals", "User:nobody-here",
            "kquota.tag.sets.max", Integer.toString(tagSetsMax)));
        Node node = new Node(1, "localhost", 9092);
        made.updateClusterMetadata(new Cluster("bench", List.of(node), List.of(), Set.of(), Set.of(), node));
        return made;
    }

    /** The broker's call after the append: meters the bytes, and returns for how long to mute the client. */
    int record(int client, double bytes) {
        return quotas.maybeRecordAndGetThrottleTimeMs(sessions[client], clientIds[client], bytes, System.currentTimeMillis());
    }

    int clients() {
        return sessions.length;
    }

    @Override
    public void close() {
        quotas.shutdown();
        if (callback != null) {
            callback.close();
        }
        metrics.close();
    }
}
