package org.kquota.metering;

import org.kquota.quota.KafkaNames;

import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.OptionalDouble;

import javax.management.AttributeNotFoundException;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import javax.management.RuntimeMBeanException;

/**
 * Produce rates read from the broker's MBeans in this JVM, which are there without any setting: metric.reporters
 * defaults to the JmxReporter.
 */
public final class JmxProduceRates implements ProduceRates {
    private static final String ATTRIBUTE = "byte-rate";

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();

    @Override
    public OptionalDouble bytesPerSecond(Map<String, String> tags) {
        return read(name(tags));
    }

    @Override
    public Rate of(Map<String, String> tags) {
        ObjectName name = name(tags);
        return () -> read(name);
    }

    private OptionalDouble read(ObjectName name) {
        try {
            Object rate = server.getAttribute(name, ATTRIBUTE);
            return rate instanceof Double number && Double.isFinite(number) ? OptionalDouble.of(Math.max(0, number)) : OptionalDouble.empty();
        } catch (InstanceNotFoundException | AttributeNotFoundException | RuntimeMBeanException e) {
            // A client's rate and its throttle time expire apart, and an MBean may be read just as it is removed.
            return OptionalDouble.empty();
        } catch (JMException e) {
            throw new IllegalStateException("the produce rate " + name + " cannot be read over JMX: " + e, e);
        }
    }

    private static ObjectName name(Map<String, String> tags) {
        StringBuilder text = new StringBuilder("kafka.server:type=Produce");
        // As the JmxReporter does: empty tags are left out.
        tags.forEach((key, value) -> {
            if (!value.isEmpty()) {
                text.append(',').append(key).append('=').append(KafkaNames.inMBean(value));
            }
        });
        try {
            return new ObjectName(text.toString());
        } catch (MalformedObjectNameException e) {
            throw new IllegalStateException("the produce rate of " + tags + " cannot be read over JMX: " + e, e);
        }
    }
}
