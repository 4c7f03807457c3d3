package org.kquota.quota;

import kafka.server.ClientQuotaManager;

import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.QuotaType;

import java.net.InetAddress;
import java.util.Map;

import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Kafka up to 4.1: the class is written in Scala. */
public final class BrokerQuotasOfThisKafka implements BrokerQuotas {
    private final ClientQuotaManager quotas;
    private final Time time;

    public BrokerQuotasOfThisKafka(QuotaType type, Metrics metrics, Time time, int windows, ClientQuotaCallback callback) {
        this.time = time;
        Option<Plugin<ClientQuotaCallback>> plugin = callback == null ? Option.empty()
            : Option.apply(Plugin.wrapInstance(callback, metrics, "client.quota.callback.class", "role", "broker"));
        this.quotas = new ClientQuotaManager(new ClientQuotaManagerConfig(windows, 1), metrics, type, time, "test", plugin);
    }

    @Override
    public void update(String user, String clientId, Double bound) {
        ClientQuotaManager.BaseUserEntity userEntity = null;
        if (user != null) {
            userEntity = DEFAULT.equals(user) ? ClientQuotaManager.DefaultUserEntity$.MODULE$
                : new ClientQuotaManager.UserEntity(KafkaNames.sanitized(user));
        }
        ClientQuotaEntity.ConfigEntity clientEntity = null;
        if (clientId != null) {
            clientEntity = DEFAULT.equals(clientId) ? ClientQuotaManager.DefaultClientIdEntity$.MODULE$
                : new ClientQuotaManager.ClientIdEntity(clientId);
        }
        quotas.updateQuota(Option.apply(userEntity), Option.apply(clientEntity),
            Option.apply(bound == null ? null : new Quota(bound, true)));
    }

    @Override
    public int record(String user, String clientId, double bytes) {
        return quotas.recordAndGetThrottleTimeMs(session(user), clientId, bytes, time.milliseconds());
    }

    @Override
    public Map<String, String> tags(String user, String clientId) {
        return CollectionConverters.asJava(quotas.getOrCreateQuotaSensors(session(user), clientId).metricTags());
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
