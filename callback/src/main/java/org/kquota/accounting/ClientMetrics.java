package org.kquota.accounting;

import org.kquota.quota.KafkaNames;

import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

import javax.management.AttributeNotFoundException;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import javax.management.RuntimeMBeanException;

/** The broker's own quota metrics of one type for a set of tags, read from its MBeans in this JVM. Used by one thread. */
final class ClientMetrics {
    private static final String RATE = "byte-rate";
    private static final String THROTTLE = "throttle-time";
    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final String type;
    private final Map<Map<String, String>, ObjectName> names = new HashMap<>();

    /** Bytes per second, and the average delay of the requests that were delayed lately, in milliseconds; 0 without any. */
    record Reading(double bytesPerSecond, double throttleMs) {
        static final Reading NOTHING = new Reading(0, 0);
    }

    /** @param type as the MBeans are called: Produce or Fetch */
    ClientMetrics(String type) {
        this.type = type;
    }

    /** Forgets the names of all others. */
    void keep(Set<Map<String, String>> known) {
        names.keySet().retainAll(known);
    }

    /** How many names are kept. */
    int size() {
        return names.size();
    }

    Reading read(Map<String, String> tags) {
        try {
            ObjectName name = name(tags);
            return new Reading(value(name, RATE), value(name, THROTTLE));
        } catch (InstanceNotFoundException e) {
            return Reading.NOTHING;
        } catch (JMException e) {
            throw new IllegalStateException("the " + type + " metrics of " + tags + " cannot be read over JMX: " + e, e);
        }
    }

    /** One attribute, since of several at once Kafka logs a warning for each that is not there: a rate and its throttle time expire apart. */
    private double value(ObjectName name, String attribute) throws JMException {
        try {
            return server.getAttribute(name, attribute) instanceof Double number && Double.isFinite(number) ? Math.max(0, number) : 0;
        } catch (AttributeNotFoundException | RuntimeMBeanException e) {
            return 0;
        }
    }

    private ObjectName name(Map<String, String> tags) throws MalformedObjectNameException {
        ObjectName name = names.get(tags);
        if (name == null) {
            StringBuilder text = new StringBuilder("kafka.server:type=").append(type);
            // As the JmxReporter does: empty tags are left out.
            tags.forEach((key, value) -> {
                if (!value.isEmpty()) {
                    text.append(',').append(key).append('=').append(KafkaNames.inMBean(value));
                }
            });
            name = new ObjectName(text.toString());
            names.put(tags, name);
        }
        return name;
    }
}
