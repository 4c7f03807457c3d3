package org.kquota.threshold;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.lang.management.ManagementFactory;
import java.util.Set;

import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;

class JmxBytesInTest {
    private static final String ALL = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec";

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final JmxBytesIn bytesIn = new JmxBytesIn();
    private double rate = 700;

    /** As a broker's meter. */
    public interface Meter {
        double getOneMinuteRate();
    }

    @BeforeEach
    void aBroker() throws Exception {
        server.registerMBean(new StandardMBean((Meter) () -> rate, Meter.class), new ObjectName(ALL));
        server.registerMBean(new StandardMBean((Meter) () -> rate / 2, Meter.class), new ObjectName(ALL + ",topic=orders"));
    }

    @AfterEach
    void unregister() throws Exception {
        server.unregisterMBean(new ObjectName(ALL));
        server.unregisterMBean(new ObjectName(ALL + ",topic=orders"));
    }

    @Test
    void theRatesAreThoseOfTheBrokersMeters() {
        assertEquals(700, bytesIn.total());
        assertEquals(350, bytesIn.of("orders"));
        rate = 900;
        assertEquals(900, bytesIn.total());
        assertEquals(450, bytesIn.of("orders"));
    }

    @Test
    void whatHasNoMeterTakesNothingIn() {
        assertEquals(0, bytesIn.of("other"));
    }

    @Test
    void whatIsNoNameOfATopicIsAFault() {
        assertThrows(IllegalArgumentException.class, () -> bytesIn.of("a,b"));
    }

    @Test
    void ofTopicsThatAreGoneNothingIsKept() {
        bytesIn.total();
        bytesIn.of("orders");
        bytesIn.of("gone");
        assertEquals(3, bytesIn.size());
        bytesIn.keep(Set.of("orders"));
        assertEquals(2, bytesIn.size(), "that of all topics, too");
        assertEquals(350, bytesIn.of("orders"));
    }
}
