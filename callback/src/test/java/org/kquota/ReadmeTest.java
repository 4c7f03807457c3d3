package org.kquota;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.common.config.ConfigDef;
import org.junit.jupiter.api.Test;
import org.kquota.config.KquotaConfig;
import org.kquota.group.GroupProperties;
import org.kquota.node.NodeMetrics;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The tables of the README are made from the code. To write them again:
 * <code>mvn -f callback/pom.xml test -Dtest=ReadmeTest -Dkquota.readme.write=true</code>
 */
class ReadmeTest {
    private static final Path README = Path.of(System.getProperty("kquota.readme"));

    @Test
    void theTablesAreThoseOfTheCode() throws IOException {
        String text = Files.readString(README);
        String fresh = replace(replace(text, "properties", properties()), "metrics", metrics());
        if (Boolean.getBoolean("kquota.readme.write")) {
            Files.writeString(README, fresh);
        } else {
            assertEquals(fresh, text);
        }
    }

    private static String replace(String text, String name, String table) {
        String begin = "<!-- " + name + ": made from the code, see ReadmeTest -->\n";
        String end = "<!-- end of " + name + " -->";
        return text.substring(0, text.indexOf(begin) + begin.length()) + table + text.substring(text.indexOf(end));
    }

    private static String properties() {
        StringBuilder table = new StringBuilder("| property | default | allowed | changes | meaning |\n|---|---|---|---|---|\n");
        Map<String, ConfigDef.ConfigKey> keys = new TreeMap<>(KquotaConfig.DEFINITION.configKeys());
        keys.putAll(GroupProperties.definition("NAME").configKeys());
        keys.forEach((name, key) -> {
            String byDefault = !key.hasDefault() ? "none, required" : key.defaultValue.equals("") || key.defaultValue.equals(List.of()) ? "empty"
                : "`" + key.defaultValue + "`";
            table.append(String.format("| `%s` | %s | %s | %s | %s |%n", name, byDefault, key.validator,
                KquotaConfig.READ_AT_START.contains(name) ? "at start" : "live", key.documentation));
        });
        return table.toString();
    }

    private static String metrics() {
        StringBuilder table = new StringBuilder("| attribute | meaning |\n|---|---|\n");
        for (NodeMetrics metric : NodeMetrics.values()) {
            table.append(String.format("| `%s` | %s |%n", metric.metricName(), metric.description()));
        }
        return table.toString();
    }
}
