package org.kquota.kafka;

import kafka.api.UserQuotaTest;

import org.junit.jupiter.api.Tag;

/** Kafka's own test, with the plug-in in place of the built-in callback. */
@Tag("long")
class KafkasUserQuotaTest extends UserQuotaTest {
    KafkasUserQuotaTest() {
        PluggedIn.into(serverConfig());
        PluggedIn.into(controllerConfig());
    }

    @Override
    public long defaultProducerQuota() {
        return PluggedIn.PRODUCER_QUOTA;
    }
}
