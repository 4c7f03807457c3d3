package org.kquota;

import org.apache.kafka.common.config.ConfigException;
import org.kquota.config.KquotaConfig;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;

/**
 * Checks whether the plug-in accepts a <code>server.properties</code>, before you restart a broker with it:
 *
 * <pre>java -cp kquota-callback.jar:/opt/kafka/libs/* org.kquota.CheckProperties FILE</pre>
 *
 * <p>A file <code>-</code> is standard input. Ends with 0, with 78 and the reason where a property is missing or not allowed, or with 66 where there is no such file. Prints no
 * value but that of a property of the plug-in.
 */
public final class CheckProperties {
    private static final int USAGE = 64;
    private static final int NO_INPUT = 66;
    private static final int CONFIGURATION = 78;
    private static final Set<String> FENCES = Set.of(KquotaConfig.AUTHORIZER, AuthorizerWithoutMetrics.class.getName());

    private CheckProperties() {
    }

    public static void main(String[] arguments) {
        System.exit(run(arguments));
    }

    static int run(String... arguments) {
        if (arguments.length != 1) {
            System.err.println("usage: org.kquota.CheckProperties FILE");
            return USAGE;
        }
        Properties properties = new Properties();
        // As the broker reads it: a Reader would take it for UTF-8.
        try (InputStream file = "-".equals(arguments[0]) ? System.in : Files.newInputStream(Path.of(arguments[0]))) {
            properties.load(file);
        } catch (IOException | IllegalArgumentException e) {
            System.err.println(arguments[0] + ": " + e);
            return NO_INPUT;
        }
        try {
            Map<String, String> values = new HashMap<>();
            properties.stringPropertyNames().forEach(name -> values.put(name, properties.getProperty(name)));
            KquotaConfig config = new KquotaConfig(values);
            if (FENCES.contains(values.getOrDefault("authorizer.class.name", "")) && config.isBroker()) {
                config.requireCallback(CallbackWithoutMetrics.class);
            }
            return 0;
        } catch (NoClassDefFoundError e) {
            System.err.println("This Kafka has no " + e.getMessage() + ": Kafka 4.0 needs " + CallbackWithoutMetrics.class.getName() + " and "
                + AuthorizerWithoutMetrics.class.getName() + " in client.quota.callback.class and authorizer.class.name.");
            return CONFIGURATION;
        } catch (ConfigException e) {
            System.err.println(e.getMessage());
            return CONFIGURATION;
        }
    }
}
