package org.kquota.node;

import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;

/** The properties that Kafka wrote into a node's directories when it formatted them. */
final class MetaProperties {
    private static final String FILE = "meta.properties";
    private static final String CLUSTER_ID = "cluster.id";

    private MetaProperties() {
    }

    /** The cluster that these directories were formatted for, by the first that names one; null if none does. */
    static String clusterId(List<String> dirs) {
        for (String dir : dirs) {
            try (Reader reader = Files.newBufferedReader(Path.of(dir, FILE))) {
                Properties properties = new Properties();
                properties.load(reader);
                String clusterId = properties.getProperty(CLUSTER_ID, "").strip();
                if (!clusterId.isEmpty()) {
                    return clusterId;
                }
            } catch (IOException | IllegalArgumentException e) {
                // A failed disk, for one: Kafka itself reports it. Another directory may name the cluster, and later the broker does.
            }
        }
        return null;
    }
}
