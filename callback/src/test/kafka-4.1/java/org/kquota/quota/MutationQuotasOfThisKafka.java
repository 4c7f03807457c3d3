package org.kquota.quota;

import kafka.server.ClientQuotaManager;
import kafka.server.ControllerMutationQuota;
import kafka.server.ControllerMutationQuotaManager;

import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaCallback;

import java.net.InetAddress;

import scala.Option;

/** Kafka up to 4.1: the class is written in Scala. */
public final class MutationQuotasOfThisKafka implements MutationQuotas {
    private final ControllerMutationQuotaManager quotas;

    public MutationQuotasOfThisKafka(Metrics metrics, Time time, int windows, ClientQuotaCallback callback) {
        this.quotas = new ControllerMutationQuotaManager(new ClientQuotaManagerConfig(windows, 1), metrics, time, "test",
            Option.apply(Plugin.wrapInstance(callback, metrics, "client.quota.callback.class", "role", "controller")));
    }

    @Override
    public void update(String user, double bound) {
        quotas.updateQuota(Option.apply(new ClientQuotaManager.UserEntity(KafkaNames.sanitized(user))), Option.empty(), Option.apply(new Quota(bound, true)));
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
