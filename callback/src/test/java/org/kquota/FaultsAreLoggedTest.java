package org.kquota;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.kquota.TestDecision.await;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

import javax.management.Attribute;
import javax.management.AttributeList;
import javax.management.DynamicMBean;
import javax.management.MBeanException;
import javax.management.MBeanInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** Every fault in the plug-in comes to the broker's log, with its stack trace. */
class FaultsAreLoggedTest {
    private static final ClientQuotaType PRODUCE = ClientQuotaType.PRODUCE;
    private static final KafkaPrincipal ALICE = new KafkaPrincipal("User", "alice");

    /** A metric of the broker that cannot be read. */
    private static final class Unreadable implements DynamicMBean {
        @Override
        public Object getAttribute(String attribute) throws MBeanException {
            throw new MBeanException(new Exception("an injected fault"));
        }

        @Override
        public void setAttribute(Attribute attribute) {
            throw new UnsupportedOperationException();
        }

        @Override
        public AttributeList getAttributes(String[] attributes) {
            return new AttributeList();
        }

        @Override
        public AttributeList setAttributes(AttributeList attributes) {
            return new AttributeList();
        }

        @Override
        public Object invoke(String action, Object[] parameters, String[] signature) {
            throw new UnsupportedOperationException();
        }

        @Override
        public MBeanInfo getMBeanInfo() {
            return new MBeanInfo(Unreadable.class.getName(), "it fails", null, null, null, null);
        }
    }

    @TempDir
    private Path directory;
    private final MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
    private final List<ObjectName> registered = new ArrayList<>();
    private final List<CallbackWithoutMetrics> open = new ArrayList<>();
    private Map<String, Object> properties;

    @BeforeEach
    void open() throws Exception {
        new TestDecision(directory).write("OPEN", 1);
        properties = TestProperties.broker(directory);
    }

    @AfterEach
    void close() throws Exception {
        open.forEach(CallbackWithoutMetrics::close);
        for (ObjectName name : registered) {
            beans.unregisterMBean(name);
        }
    }

    private void unreadable(String name) throws Exception {
        registered.add(new ObjectName(name));
        beans.registerMBean(new Unreadable(), new ObjectName(name));
    }

    private CallbackWithoutMetrics start(CallbackWithoutMetrics callback) {
        callback.configure(properties);
        open.add(callback);
        return callback;
    }

    private void logs(String kind, CallbackWithoutMetrics callback, Consumer<CallbackWithoutMetrics> deed) throws Exception {
        try (LogLines log = new LogLines(KquotaCallback.class)) {
            start(callback);
            deed.accept(callback);
            await("a line of " + kind, () -> log.lines().stream().anyMatch(line -> line.startsWith("fault of kind " + kind + ", ")));
            assertTrue(log.faults().size() > 0);
        }
    }

    @Test
    @Tag("F24")
    void aQuotaThatCannotBeTakenOver() throws Exception {
        logs("quota_update", new KquotaCallback(), callback -> callback.updateQuota(PRODUCE, List::of, 5));
    }

    @Test
    @Tag("F24")
    void clusterMetadataThatCannotBeRead() throws Exception {
        logs("metadata", new KquotaCallback(), callback -> callback.updateClusterMetadata(null));
    }

    @Test
    @Tag("F24")
    void aStepOfTheGovernor() throws Exception {
        unreadable("kafka.server:type=Produce,client-id=app");
        logs("governor", new KquotaCallback(), callback -> callback.quotaMetricTags(PRODUCE, ALICE, "app"));
    }

    @Test
    @Tag("F24")
    void accountsOfClients() throws Exception {
        unreadable("kafka.server:type=Fetch,client-id=app");
        logs("clients", new KquotaCallback(), callback -> callback.quotaMetricTags(ClientQuotaType.FETCH, ALICE, "app"));
    }

    @Test
    @Tag("F24")
    void aLookAtTheLogDirs() throws Exception {
        unreadable("kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=x");
        logs("log_dirs", new KquotaCallback(), callback -> { });
    }

    @Test
    @Tag("F24")
    void aReportThatCannotBeWritten() throws Exception {
        Files.delete(directory.resolve("applied"));
        logs("applied_file", new KquotaCallback(), callback -> { });
    }

    @Test
    @Tag("F24")
    void aRequest() throws Exception {
        logs("request", new FaultyCallback(), callback -> callback.quotaMetricTags(PRODUCE, ALICE, "poison"));
    }

    /** It has no threads of its own. */
    @Test
    @Tag("F24")
    void aQuotaAndARequestOnAController() throws Exception {
        properties.put("process.roles", "controller");
        try (LogLines log = new LogLines(KquotaCallback.class)) {
            CallbackWithoutMetrics controller = start(new FaultyCallback());
            controller.quotaMetricTags(ClientQuotaType.CONTROLLER_MUTATION, ALICE, "poison");
            assertEquals(List.of(), log.lines(), "on a request thread");
            controller.updateQuota(ClientQuotaType.CONTROLLER_MUTATION, List::of, 5);
            assertEquals(2, log.faults().size(), log.lines()::toString);
        }
    }
}
