package org.kquota.kafka;

import kafka.api.UserClientIdQuotaTest;

import org.junit.jupiter.api.Tag;

/** Kafka's own test, with the plug-in in place of the built-in callback. */
@Tag("long")
class KafkasUserClientIdQuotaTest extends UserClientIdQuotaTest {
    KafkasUserClientIdQuotaTest() {
        PluggedIn.into(serverConfig());
        PluggedIn.into(controllerConfig());
    }

    @Override
    public long defaultProducerQuota() {
        return PluggedIn.PRODUCER_QUOTA;
    }
}
