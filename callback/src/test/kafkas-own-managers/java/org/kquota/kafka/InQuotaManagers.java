package org.kquota.kafka;

import static org.junit.jupiter.api.Assertions.assertTrue;

import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.matcher.ElementMatchers;

import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.kquota.KquotaCallback;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;

/**
 * Kafka's tests of its quota managers make them without any callback. This has the managers' constructor take the plug-in where it is given
 * none, as a broker with the plug-in hands it over, one for all managers of a test, and closes it after each test as a broker does.
 */
public final class InQuotaManagers implements BeforeAllCallback, AfterEachCallback, AfterAllCallback {
    private static boolean installed;
    private static boolean asked;
    private static Plugin<ClientQuotaCallback> plugin;

    /** Code that goes before that of the constructor. */
    public static final class Constructor {
        private Constructor() {
        }

        /** Replaces its last argument. */
        @Advice.OnMethodEnter
        public static void enter(@Advice.Argument(1) Metrics metrics,
                @Advice.Argument(value = 5, readOnly = false) Optional<Plugin<ClientQuotaCallback>> callback) {
            callback = given(callback, metrics);
        }
    }

    /** The callback that the test has given, or else the plug-in. */
    public static synchronized Optional<Plugin<ClientQuotaCallback>> given(Optional<Plugin<ClientQuotaCallback>> callback, Metrics metrics) {
        asked = true;
        if (callback.isPresent()) {
            return callback;
        }
        if (plugin == null) {
            Properties node = new Properties();
            node.setProperty("node.id", "1");
            node.setProperty("process.roles", "broker");
            PluggedIn.into(node);
            Map<String, Object> properties = new HashMap<>();
            node.stringPropertyNames().forEach(name -> properties.put(name, node.getProperty(name)));
            ClientQuotaCallback made = new KquotaCallback();
            made.configure(properties);
            plugin = Plugin.wrapInstance(made, metrics, "client.quota.callback.class");
        }
        return Optional.of(plugin);
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        asked = false;
        if (!installed) {
            installed = true;
            new AgentBuilder.Default()
                .disableClassFormatChanges()
                .with(AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
                .with(AgentBuilder.Listener.StreamWriting.toSystemError().withErrorsOnly())
                .type(ElementMatchers.named(ClientQuotaManager.class.getName()))
                .transform((builder, type, loader, module, domain) -> builder
                    .visit(Advice.to(Constructor.class).on(ElementMatchers.isConstructor().and(ElementMatchers.takesArguments(6)))))
                .installOn(ByteBuddyAgent.install());
        }
    }

    @Override
    public void afterAll(ExtensionContext context) {
        assertTrue(asked, "no quota manager has asked for the plug-in: is its constructor another one now?");
    }

    @Override
    public synchronized void afterEach(ExtensionContext context) throws Exception {
        if (plugin != null) {
            plugin.close();
            plugin = null;
        }
    }
}
