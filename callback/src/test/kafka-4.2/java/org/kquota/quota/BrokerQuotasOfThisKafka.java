package org.kquota.quota;

import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

import java.net.InetAddress;
import java.util.Map;
import java.util.Optional;

/** Kafka from 4.2 on: the class is written in Java. */
public final class BrokerQuotasOfThisKafka implements BrokerQuotas {
    private final ClientQuotaManager quotas;
    private final Time time;

    public BrokerQuotasOfThisKafka(QuotaType type, Metrics metrics, Time time, int windows, ClientQuotaCallback callback) {
        this.time = time;
        Optional<Plugin<ClientQuotaCallback>> plugin = Optional.ofNullable(callback)
            .map(given -> Plugin.wrapInstance(given, metrics, "client.quota.callback.class", "role", "broker"));
        this.quotas = new ClientQuotaManager(new ClientQuotaManagerConfig(windows, 1), metrics, type, time, "test", plugin);
    }

    @Override
    public void update(String user, String clientId, Double bound) {
        ClientQuotaEntity.ConfigEntity userEntity = user == null ? null
            : DEFAULT.equals(user) ? ClientQuotaManager.DEFAULT_USER_ENTITY
            : new ClientQuotaManager.UserEntity(KafkaNames.sanitized(user));
        ClientQuotaEntity.ConfigEntity clientEntity = clientId == null ? null
            : DEFAULT.equals(clientId) ? ClientQuotaManager.DEFAULT_USER_CLIENT_ID
            : new ClientQuotaManager.ClientIdEntity(clientId);
        quotas.updateQuota(Optional.ofNullable(userEntity), Optional.ofNullable(clientEntity),
            Optional.ofNullable(bound).map(value -> new Quota(value, true)));
    }

    @Override
    public int record(String user, String clientId, double bytes) {
        return quotas.recordAndGetThrottleTimeMs(session(user), clientId, bytes, time.milliseconds());
    }

    @Override
    public Map<String, String> tags(String user, String clientId) {
        return quotas.getOrCreateQuotaSensors(session(user), clientId).metricTags();
    }

    @Override
    public double limit(String user, String clientId) {
        return quotas.quota(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user), clientId).bound();
    }

    @Override
    public void close() {
        quotas.shutdown();
    }

    private static Session session(String user) {
        return new Session(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user), InetAddress.getLoopbackAddress());
    }
}
