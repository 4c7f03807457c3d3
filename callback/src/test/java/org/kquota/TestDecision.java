package org.kquota;

import org.kquota.decision.BootClock;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Locale;
import java.util.function.BooleanSupplier;

/** Writes decision files as the agent of broker 1 does. */
public final class TestDecision {
    private final Path file;
    private final BootClock bootClock = new BootClock();
    private long sequence;

    public TestDecision(Path directory) throws IOException {
        file = directory.resolve("decision/decision.json");
        Files.createDirectories(file.getParent());
        Files.setPosixFilePermissions(file.getParent(), PosixFilePermissions.fromString("rwxr-xr-x"));
        Files.createDirectories(directory.resolve("applied"));
    }

    Path file() {
        return file;
    }

    public void write(String state, double factor) throws IOException {
        write(state, factor, "enforce", 60_000);
    }

    public void write(String state, double factor, String mode, long leaseMs) throws IOException {
        write(state, factor, mode, leaseMs, "");
    }

    /** A decision whose scope is topics. */
    public void writeTopics(String state, double factor, String topics) throws IOException {
        write(state, factor, "enforce", 60_000, "\"scope\": \"topics\", \"topics\": " + topics + ", ");
    }

    /** A decision of a broker with this one log dir, and the bytes available there at which its state changes. */
    public void writeBeside(Path logDir, long softBytes, long hardBytes, String state, double factor, long leaseMs) throws IOException {
        write(state, factor, "enforce", leaseMs, String.format(Locale.ROOT,
            "\"own_log_dirs\": [{\"log_dir\": \"%s\", \"soft_available_bytes\": %d, \"hard_available_bytes\": %d}], ", logDir, softBytes, hardBytes));
    }

    private void write(String state, double factor, String mode, long leaseMs, String scope) throws IOException {
        Path temporary = file.resolveSibling("decision.tmp");
        Files.deleteIfExists(temporary);
        Files.writeString(temporary, String.format(Locale.ROOT,
            "{\"schema_version\": 1, \"cluster_id\": \"c\", \"broker_id\": 1, \"sequence\": %d, \"mode\": \"%s\", \"state\": \"%s\", "
                + "\"factor\": %.6f, %s\"boot_id\": \"%s\", \"valid_until_uptime_ms\": %d}",
            ++sequence, mode, state, factor, scope, bootClock.bootId(), bootClock.uptimeMs() + leaseMs));
        Files.setPosixFilePermissions(temporary, PosixFilePermissions.fromString("rw-r--r--"));
        Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE);
    }

    public static void await(String what, BooleanSupplier condition) throws InterruptedException {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("it did not come to: " + what);
            }
            Thread.sleep(5);
        }
    }
}
