package org.kquota.kafka;

import org.kquota.KquotaCallback;
import org.kquota.KquotaConfig;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/** Puts the plug-in into the nodes of Kafka's own tests, in place of the built-in callback. */
final class PluggedIn {
    private PluggedIn() {
    }

    /** Adds it to a node's properties. Nothing is decided in these tests, so nobody is held. */
    static void into(Properties node) {
        try {
            Path directory = Files.createTempDirectory("kquota");
            directory.toFile().deleteOnExit();
            node.setProperty("client.quota.callback.class", KquotaCallback.class.getName());
            node.setProperty(KquotaConfig.EXEMPT_PRINCIPALS, "User:nobody-in-these-tests");
            node.setProperty(KquotaConfig.DECISION_FILE, directory.resolve("decision.json").toString());
            // Where there is no such directory: these nodes leave nothing behind.
            node.setProperty(KquotaConfig.APPLIED_FILE, directory.resolve("none/applied.json").toString());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Adds it to each of these nodes. */
    static void into(Iterable<Properties> nodes) {
        nodes.forEach(PluggedIn::into);
    }
}
