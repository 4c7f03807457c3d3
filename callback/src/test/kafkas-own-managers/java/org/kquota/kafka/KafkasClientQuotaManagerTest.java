package org.kquota.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import kafka.server.ClientQuotaManagerTest;

import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import java.util.List;
import java.util.Optional;

/** Kafka's own test, with the plug-in in place of the built-in callback. */
@Tag("long")
@ExtendWith(InQuotaManagers.class)
class KafkasClientQuotaManagerTest extends ClientQuotaManagerTest {
    /** Kafka counts quotas only for the callback of its own; with any other they are enabled always. */
    @Test
    @Override
    public void testQuotaTypesEnabledUpdatesWithDefaultCallback() {
        ClientQuotaManager manager = new ClientQuotaManager(new ClientQuotaManagerConfig(), metrics(), QuotaType.CONTROLLER_MUTATION, time(), "");
        try {
            for (Optional<Quota> quota : List.of(Optional.<Quota>empty(), Optional.of(new Quota(12, true)), Optional.<Quota>empty())) {
                manager.updateQuota(Optional.of(new ClientQuotaManager.UserEntity("userA")), Optional.empty(), quota);
                assertEquals(ClientQuotaManager.CUSTOM_QUOTAS, manager.quotaTypesEnabled());
                assertTrue(manager.quotasEnabled());
            }
        } finally {
            manager.shutdown();
        }
    }
}
