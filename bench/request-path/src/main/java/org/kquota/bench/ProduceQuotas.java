package org.kquota.bench;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
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
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * A broker's own produce quotas, with some clients: each has a user and a client id of its own. The plug-in, where there
 * is one, is loaded by its name and reads a decision file, as in a broker.
 */
public class ProduceQuotas implements AutoCloseable {
    /** The callback that meters. */
    public enum Kind {
        /** Stock, with no quota set: the broker meters no client. */
        STOCK_WITHOUT_QUOTAS,
        /** Stock, with a quota that no client reaches. */
        STOCK,
        /** The plug-in, with no quota set: it still meters all clients. */
        KQUOTA_WITHOUT_QUOTAS,
        /** The plug-in, with a quota that no client reaches. */
        KQUOTA
    }

    private static final int WINDOWS = 11;
    private static final double UNREACHED_BYTES_PER_SECOND = 1e15;

    // As a broker has them: the plug-in reads rates over JMX.
    final Metrics metrics =
        new Metrics(new MetricConfig(), List.of(new JmxReporter()), Time.SYSTEM, new KafkaMetricsContext("kafka.server"));
    private final ClientQuotaCallback callback;
    private final ClientQuotaManager quotas;
    private final Session[] sessions;
    private final String[] clientIds;

    /** @param plugIn the plug-in's properties; empty: the stock quotas */
    ProduceQuotas(int clients, boolean quota, Map<String, String> plugIn, List<Node> brokers, List<PartitionInfo> partitions)
        throws ReflectiveOperationException {
        callback = plugIn.isEmpty() ? null : (ClientQuotaCallback) Class.forName("org.kquota.KquotaCallback").getDeclaredConstructor().newInstance();
        if (callback != null) {
            callback.configure(plugIn);
            callback.updateClusterMetadata(new Cluster("bench", brokers, partitions, Set.of(), Set.of(), brokers.get(0)));
        }
        quotas = new ClientQuotaManager(new ClientQuotaManagerConfig(WINDOWS, 1), metrics, QuotaType.PRODUCE, Time.SYSTEM, "bench",
            Optional.ofNullable(callback).map(it -> Plugin.wrapInstance(it, metrics, "client.quota.callback.class", "role", "broker")));
        if (quota) {
            quotas.updateQuota(Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY), Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID),
                Optional.of(new Quota(UNREACHED_BYTES_PER_SECOND, true)));
        }
        sessions = new Session[clients];
        clientIds = new String[clients];
        for (int i = 0; i < clients; i++) {
            sessions[i] = new Session(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user(i)), InetAddress.getLoopbackAddress());
            clientIds[i] = clientId(i);
            record(i, 1);
        }
    }

    /** @param tagSetsMax how many tag sets without a quota the plug-in keeps apart */
    static ProduceQuotas of(Kind kind, int clients, Path directory, int tagSetsMax) throws ReflectiveOperationException {
        boolean pluggedIn = kind == Kind.KQUOTA || kind == Kind.KQUOTA_WITHOUT_QUOTAS;
        Map<String, String> properties = pluggedIn ? plugIn(directory) : Map.of();
        if (pluggedIn) {
            properties.put("kquota.tag.sets.max", Integer.toString(tagSetsMax));
        }
        return new ProduceQuotas(clients, kind == Kind.STOCK || kind == Kind.KQUOTA, properties, List.of(new Node(1, "localhost", 9092)), List.of());
    }

    /** @param directory where decision/decision.json is and applied/ is to be written */
    static Map<String, String> plugIn(Path directory) {
        return new HashMap<>(Map.of(
            "node.id", "1", "process.roles", "broker", "kquota.mode", "enforce", "kquota.exempt.principals", "User:nobody-here",
            "kquota.decision.file", directory.resolve("decision/decision.json").toString(),
            "kquota.applied.file", directory.resolve("applied/applied.json").toString()));
    }

    String user(int client) {
        return "user-" + client;
    }

    String clientId(int client) {
        return "client-" + client;
    }

    /** The broker's call after the append: meters the bytes, and returns for how long to mute the client. */
    int record(int client, double bytes) {
        return quotas.maybeRecordAndGetThrottleTimeMs(sessions[client], clientIds[client], bytes, System.currentTimeMillis());
    }

    int clients() {
        return sessions.length;
    }

    @Override
    public void close() throws Exception {
        quotas.shutdown();
        if (callback != null) {
            callback.close();
        }
        metrics.close();
    }
}
