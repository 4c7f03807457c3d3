package org.kquota.applied;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.lang.management.ManagementFactory;
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
    void namesTheLogDirsWhoseGaugeSaysOne() throws Exception {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName offline = name("\"/data/ü 2\"");
        ObjectName plain = name("plain");
        ObjectName online = name("\"/data/1\"");
        server.registerMBean(new Gauge(1), offline);
        server.registerMBean(new Gauge(1), plain);
        server.registerMBean(new Gauge(0), online);
        try {
            assertEquals(List.of("/data/ü 2", "plain"), new OfflineLogDirs().list());
        } finally {
            server.unregisterMBean(offline);
            server.unregisterMBean(plain);
            server.unregisterMBean(online);
        }
        assertEquals(List.of(), new OfflineLogDirs().list());
    }

    private static ObjectName name(String directory) throws Exception {
        return new ObjectName("kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=" + directory);
    }
}
