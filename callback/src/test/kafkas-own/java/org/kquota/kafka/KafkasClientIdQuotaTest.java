package org.kquota.kafka;

import kafka.api.ClientIdQuotaTest;

import org.junit.jupiter.api.Tag;

/** Kafka's own test, with the plug-in in place of the built-in callback. */
@Tag("long")
class KafkasClientIdQuotaTest extends ClientIdQuotaTest {
    KafkasClientIdQuotaTest() {
        PluggedIn.into(serverConfig());
        PluggedIn.into(controllerConfig());
    }

    @Override
    public long defaultProducerQuota() {
        return PluggedIn.PRODUCER_QUOTA;
    }
}
