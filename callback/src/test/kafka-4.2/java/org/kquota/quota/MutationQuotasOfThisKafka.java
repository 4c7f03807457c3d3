package org.kquota.quota;

import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;

import java.net.InetAddress;
import java.util.Optional;

/** Kafka from 4.2 on: the class is written in Java. */
public final class MutationQuotasOfThisKafka implements MutationQuotas {
    private final ControllerMutationQuotaManager quotas;

    public MutationQuotasOfThisKafka(Metrics metrics, Time time, int windows, ClientQuotaCallback callback) {
        this.quotas = new ControllerMutationQuotaManager(new ClientQuotaManagerConfig(windows, 1), metrics, time, "test",
            Optional.of(Plugin.wrapInstance(callback, metrics, "client.quota.callback.class", "role", "controller")));
    }

    @Override
    public void update(String user, double bound) {
        quotas.updateQuota(Optional.of(new ClientQuotaManager.UserEntity(KafkaNames.sanitized(user))), Optional.empty(), Optional.of(new Quota(bound, true)));
    }

    @Override
    public int mutate(String user, String clientId, int partitions) {
        ControllerMutationQuota quota = quotas.newStrictQuotaFor(
            new Session(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user), InetAddress.getLoopbackAddress()), clientId);
        try {
            quota.record(partitions);
            return 0;
        } catch (ThrottlingQuotaExceededException e) {
            return e.throttleTimeMs();
        }
    }

    @Override
    public void close() {
        quotas.shutdown();
    }
}
