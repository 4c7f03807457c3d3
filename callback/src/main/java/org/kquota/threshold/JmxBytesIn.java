package org.kquota.threshold;

import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;

/** The broker's own meters, which move every five seconds, read from its MBeans in this JVM. */
public final class JmxBytesIn implements BytesIn {
    private static final String ALL = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec";

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final Map<String, ObjectName> names = new ConcurrentHashMap<>();

    @Override
    public double total() {
        return oneMinuteRate("", ALL);
    }

    @Override
    public double of(String topic) {
        return oneMinuteRate(topic, ALL + ",topic=" + topic);
    }

    @Override
    public void keep(Set<String> topics) {
        names.keySet().removeIf(topic -> !topic.isEmpty() && !topics.contains(topic));
    }

    /** How many names are kept. */
    int size() {
        return names.size();
    }

    private double oneMinuteRate(String topic, String text) {
        try {
            ObjectName name = names.get(topic);
            if (name == null) {
                name = new ObjectName(text);
                names.put(topic, name);
            }
            return server.getAttribute(name, "OneMinuteRate") instanceof Number rate ? rate.doubleValue() : 0;
        } catch (InstanceNotFoundException e) {
            return 0;
        } catch (MalformedObjectNameException e) {
            throw new IllegalArgumentException("no name of a topic: " + text, e);
        } catch (JMException e) {
            throw new IllegalStateException(text + " cannot be read: " + e, e);
        }
    }
}
