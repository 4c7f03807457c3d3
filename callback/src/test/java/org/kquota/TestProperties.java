package org.kquota;

import org.kquota.config.KquotaConfig;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/** Broker properties for tests. */
public final class TestProperties {
    private TestProperties() {
    }

    /** Those of a broker whose files are in this directory: decision/decision.json and applied/applied.json. */
    public static Map<String, Object> broker(Path directory) {
        Map<String, Object> properties = new HashMap<>();
        properties.put("node.id", "1");
        properties.put("process.roles", "broker,controller");
        properties.put(KquotaConfig.DECISION_FILE, directory.resolve("decision/decision.json").toString());
        properties.put(KquotaConfig.APPLIED_FILE, directory.resolve("applied/applied.json").toString());
        properties.put(KquotaConfig.EXEMPT_PRINCIPALS, "User:CN=agent,O=x;User:admin");
        return properties;
    }
}
