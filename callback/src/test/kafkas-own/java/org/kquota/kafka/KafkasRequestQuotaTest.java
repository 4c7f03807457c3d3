package org.kquota.kafka;

import kafka.server.RequestQuotaTest;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestInfo;

import java.util.Properties;

import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Kafka's own test, with the plug-in in place of the built-in callback. */
@Tag("long")
class KafkasRequestQuotaTest extends RequestQuotaTest {
    @Override
    public void brokerPropertyOverrides(Properties properties) {
        super.brokerPropertyOverrides(properties);
        PluggedIn.into(properties);
    }

    @Override
    public Seq<Properties> kraftControllerConfigs(TestInfo test) {
        Seq<Properties> nodes = super.kraftControllerConfigs(test);
        PluggedIn.into(CollectionConverters.asJava(nodes));
        return nodes;
    }
}
