package org.kquota.applied;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;

import javax.management.MBeanServer;
import javax.management.ObjectName;

class OfflineLogDirsTest {
    /** As the broker's gauges are registered. */
    public interface GaugeMBean {
        Object getValue();
    }

    public record Gauge(Integer value) implements GaugeMBean {
        @Override
        public Object getValue() {
            return value;
        }
    }

    @Test
    void namesTheLogDirsWhoseGaugeIsOne() throws Exception {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName offline = name("\"/data/ü 2\"");
        ObjectName plain = name("plain");
        ObjectName online = name("\"/data/1\"");
        server.registerMBean(new Gauge(1), offline);
        server.registerMBean(new Gauge(1), plain);
        server.registerMBean(new Gauge(0), online);
        try {
            assertEquals(List.of("/data/ü 2", "plain"), new OfflineLogDirs(List.of()).list(), "their names were left to Kafka");
            assertEquals(List.of("/data/ü 2"), new OfflineLogDirs(List.of("/data/1", "/data/ü 2/")).list());
            assertEquals(List.of("/data/ü 2", "plain"), new OfflineLogDirs(List.of("/data/3", "/data/1")).list(), "one has another name");
        } finally {
            server.unregisterMBean(offline);
            server.unregisterMBean(plain);
            server.unregisterMBean(online);
        }
        assertEquals(List.of(), new OfflineLogDirs(List.of("/data/1")).list());
    }

    @Test
    void aLogDirStaysAsItWasWhileTheBrokerStartsAndStops() throws Exception {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        OfflineLogDirs logDirs = new OfflineLogDirs(List.of("/data/1", "/data/2/", "/data/3"));
        logDirs.remember(List.of("/data/1", "/data/2", "/data/gone"));
        assertEquals(List.of("/data/1", "/data/2"), logDirs.list(), "the broker starts: it has looked at none");
        server.registerMBean(new Gauge(0), name("\"/data/1\""));
        try {
            assertEquals(List.of("/data/2"), logDirs.list(), "the first one is repaired");
            server.registerMBean(new Gauge(1), name("\"/data/2\""));
            server.registerMBean(new Gauge(0), name("\"/data/3\""));
            assertEquals(List.of("/data/2"), logDirs.list());
        } finally {
            for (String key : List.of("\"/data/1\"", "\"/data/2\"", "\"/data/3\"")) {
                if (server.isRegistered(name(key))) {
                    server.unregisterMBean(name(key));
                }
            }
        }
        assertEquals(List.of("/data/2"), logDirs.list(), "the broker stops");
    }

    @Test
    void aLookCostsNoMoreOnABrokerWithManyPartitions() throws Exception {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        List<ObjectName> partitions = new ArrayList<>();
        ObjectName online = name("\"/data/1\"");
        server.registerMBean(new Gauge(0), online);
        try {
            OfflineLogDirs offline = new OfflineLogDirs(List.of("/data/1"));
            fastestNanos(offline);
            long few = fastestNanos(offline);
            for (int i = 0; i < 20_000; i++) {
                ObjectName size = new ObjectName("kafka.log:type=Log,name=Size,topic=t,partition=" + i);
                server.registerMBean(new Gauge(i), size);
                partitions.add(size);
            }
            long many = fastestNanos(offline);
            assertTrue(many < 20 * few, "with 20000 more MBeans a look took " + many + " ns instead of " + few);
        } finally {
            server.unregisterMBean(online);
            for (ObjectName size : partitions) {
                server.unregisterMBean(size);
            }
        }
    }

    private static long fastestNanos(OfflineLogDirs offline) {
        long fastest = Long.MAX_VALUE;
        for (int i = 0; i < 100; i++) {
            long before = System.nanoTime();
            offline.list();
            fastest = Math.min(fastest, System.nanoTime() - before);
        }
        return fastest;
    }

    private static ObjectName name(String directory) throws Exception {
        return new ObjectName("kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=" + directory);
    }
}
