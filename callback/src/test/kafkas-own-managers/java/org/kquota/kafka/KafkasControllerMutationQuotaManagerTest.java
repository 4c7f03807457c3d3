package org.kquota.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import kafka.server.ControllerMutationQuotaManagerTest;

import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

import java.util.Optional;
import java.util.function.BiFunction;

/** Kafka's own test, with the plug-in in place of the built-in callback. */
@Tag("long")
@ExtendWith(InQuotaManagers.class)
class KafkasControllerMutationQuotaManagerTest extends ControllerMutationQuotaManagerTest {
    /** Kafka has quotas disabled only for the callback of its own; with any other a quota without a limit is one that nothing exceeds. */
    @Test
    @Override
    public void testNewStrictQuotaForReturnsUnboundedQuotaWhenQuotaIsDisabled() {
        nothingExceeds((manager, session) -> manager.newStrictQuotaFor(session, "test-client"));
    }

    /** The same. */
    @Test
    @Override
    public void testNewPermissiveQuotaForReturnsUnboundedQuotaWhenQuotaIsDisabled() {
        nothingExceeds((manager, session) -> manager.newPermissiveQuotaFor(session, "test-client"));
    }

    private void nothingExceeds(BiFunction<ControllerMutationQuotaManager, Session, ControllerMutationQuota> made) {
        ControllerMutationQuotaManager manager =
            new ControllerMutationQuotaManager(new ClientQuotaManagerConfig(10, 1), metrics(), time(), "", Optional.empty());
        try {
            ControllerMutationQuota quota = made.apply(manager, buildSession("ANONYMOUS"));
            for (int i = 0; i < 3; i++) {
                quota.record(1e12);
                assertFalse(quota.isExceeded());
                assertEquals(0, quota.throttleTime());
            }
        } finally {
            manager.shutdown();
        }
    }
}
