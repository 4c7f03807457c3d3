package org.kquota.applied;

import org.kquota.quota.KafkaNames;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.TreeSet;

import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;

/**
 * The log dirs that this broker has taken offline, by its own metrics. They are asked for by name: a search goes through all MBeans of
 * <code>kafka.log</code>, of which each partition has several.
 */
public final class OfflineLogDirs {
    private static final String DIRECTORY_KEY = "logDirectory";

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final ObjectName pattern = name("*");
    private final List<String> configured;
    private final List<ObjectName> known;
    private List<String> last = List.of();

    /** @param logDirs those of the broker, as they are configured */
    public OfflineLogDirs(List<String> logDirs) {
        configured = logDirs.stream().map(dir -> new File(dir).getAbsolutePath()).toList();
        known = configured.stream().map(dir -> name(KafkaNames.inMBean(dir))).toList();
    }

    /** Takes over those that were offline before the broker's restart: they are until the broker has looked at them. */
    public void remember(List<String> before) {
        last = before.stream().filter(configured::contains).toList();
    }

    private static ObjectName name(String directory) {
        try {
            return new ObjectName("kafka.log:type=LogManager,name=LogDirectoryOffline," + DIRECTORY_KEY + "=" + directory);
        } catch (MalformedObjectNameException e) {
            throw new IllegalArgumentException("no name of a log dir: " + directory, e);
        }
    }

    /**
     * The log dirs, sorted. One without a metric, while the broker starts or stops, is as it was last.
     *
     * @throws IllegalStateException if the broker's metrics cannot be read
     */
    public List<String> list() {
        // While the broker starts they are not there yet, and few others are.
        boolean allThere = !known.isEmpty() && known.stream().allMatch(server::isRegistered);
        TreeSet<String> offline = new TreeSet<>(last);
        for (ObjectName name : allThere ? known : server.queryNames(pattern, null)) {
            try {
                String key = name.getKeyProperty(DIRECTORY_KEY);
                String directory = key.startsWith("\"") ? ObjectName.unquote(key) : key;
                if (server.getAttribute(name, "Value") instanceof Number value && value.intValue() == 1) {
                    offline.add(directory);
                } else {
                    offline.remove(directory);
                }
            } catch (InstanceNotFoundException e) {
                // Removed between the two calls: the broker is shutting down.
            } catch (JMException e) {
                throw new IllegalStateException(name + " cannot be read: " + e, e);
            }
        }
        last = List.copyOf(offline);
        return last;
    }
}
