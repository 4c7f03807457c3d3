package org.kquota.govern;

import org.apache.kafka.common.utils.Sanitizer;

import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.concurrent.ConcurrentHashMap;

import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;

/**
 * Produce rates read from the broker's MBeans in this JVM, which are there without any setting: metric.reporters
 * defaults to the JmxReporter.
 */
public final class JmxProduceRates implements ProduceRates {
    private static final String ATTRIBUTE = "byte-rate";

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final Map<Map<String, String>, ObjectName> names = new ConcurrentHashMap<>();

    @Override
    public OptionalDouble bytesPerSecond(Map<String, String> tags) {
        try {
            Object rate = server.getAttribute(name(tags), ATTRIBUTE);
            return rate instanceof Double number && Double.isFinite(number) ? OptionalDouble.of(Math.max(0, number)) : OptionalDouble.empty();
        } catch (InstanceNotFoundException e) {
            return OptionalDouble.empty();
        } catch (JMException e) {
            throw new IllegalStateException("the produce rate of " + tags + " cannot be read over JMX: " + e, e);
        }
    }

    @Override
    public void forget(Map<String, String> tags) {
        names.remove(tags);
    }

    private ObjectName name(Map<String, String> tags) throws MalformedObjectNameException {
        ObjectName name = names.get(tags);
        if (name == null) {
            StringBuilder text = new StringBuilder("kafka.server:type=Produce");
            // As the JmxReporter does: empty tags are left out.
            tags.forEach((key, value) -> {
                if (!value.isEmpty()) {
                    text.append(',').append(key).append('=').append(Sanitizer.jmxSanitize(value));
                }
            });
            name = new ObjectName(text.toString());
            names.put(tags, name);
        }
        return name;
    }
}
