package org.kquota.kafka;

import org.kquota.KquotaCallback;
import org.kquota.config.KquotaConfig;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/**
 * Puts the plug-in into the nodes of Kafka's own tests, in place of the built-in callback. All tests of a JVM have the same files, so what a
 * node leaves behind when it stops would show in the next test.
 */
final class PluggedIn {
    /**
     * Kafka's 8000 B/s are exceeded only by a client that has fifty records a second acknowledged one after the other, which a busy machine
     * does not do. This is three tenths of it, and above what its tests lower it to. Lower still, and a client that has just produced its
     * thousand records would be held for longer than the minute that these tests wait and brokers remember a client's delays for.
     * Kafka's quota for consumers stays for that reason: they get many records at once, and exceed it on any machine.
     */
    static final long PRODUCER_QUOTA = 2400;
    private static final Path DIRECTORY = directory();

    private PluggedIn() {
    }

    private static Path directory() {
        try {
            Path directory = Files.createTempDirectory("kquota");
            directory.toFile().deleteOnExit();
            return directory;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Adds it to a node's properties. There is no decision in these tests, so no client is held. */
    static void into(Properties node) {
        node.setProperty("client.quota.callback.class", KquotaCallback.class.getName());
        node.setProperty(KquotaConfig.EXEMPT_PRINCIPALS, "User:nobody-in-these-tests");
        node.setProperty(KquotaConfig.DECISION_FILE, DIRECTORY.resolve("decision.json").toString());
        // Where there is no such directory: these nodes leave nothing behind.
        node.setProperty(KquotaConfig.APPLIED_FILE, DIRECTORY.resolve("none/applied.json").toString());
    }

    /** Adds it to each of these nodes. */
    static void into(Iterable<Properties> nodes) {
        nodes.forEach(PluggedIn::into);
    }
}
