package org.kquota.kafka;

import kafka.server.ClientRequestQuotaManagerTest;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;

/** Kafka's own test, with the plug-in in place of the built-in callback. */
@Tag("long")
@ExtendWith(InQuotaManagers.class)
class KafkasClientRequestQuotaManagerTest extends ClientRequestQuotaManagerTest {
}
