package org.kquota.applied;

import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.TreeSet;

import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;

/** The log dirs that this broker has taken offline, as its own metrics say. */
public final class OfflineLogDirs {
    private static final String DIRECTORY_KEY = "logDirectory";

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final ObjectName pattern;

    public OfflineLogDirs() {
        try {
            pattern = new ObjectName("kafka.log:type=LogManager,name=LogDirectoryOffline," + DIRECTORY_KEY + "=*");
        } catch (MalformedObjectNameException e) {
            throw new AssertionError("a constant pattern", e);
        }
    }

    /**
     * The log dirs, sorted.
     *
     * @throws IllegalStateException if the broker's metrics cannot be read
     */
    public List<String> list() {
        TreeSet<String> offline = new TreeSet<>();
        for (ObjectName name : server.queryNames(pattern, null)) {
            try {
                if (server.getAttribute(name, "Value") instanceof Number value && value.intValue() == 1) {
                    String directory = name.getKeyProperty(DIRECTORY_KEY);
                    offline.add(directory.startsWith("\"") ? ObjectName.unquote(directory) : directory);
                }
            } catch (InstanceNotFoundException e) {
                // Removed between the two calls: the broker is shutting down.
            } catch (JMException e) {
                throw new IllegalStateException(name + " cannot be read: " + e, e);
            }
        }
        return List.copyOf(offline);
    }
}
