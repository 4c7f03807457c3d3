package org.kquota.decision;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The clock on which a decision's lease is judged: milliseconds since this machine booted (CLOCK_BOOTTIME), and the
 * identity of that boot. The wall clock is never consulted, so that a clock step can neither extend nor end a lease.
 */
public final class BootClock {
    private static final Pattern UPTIME = Pattern.compile("(\\d{1,12})\\.(\\d{2})\\s.*", Pattern.DOTALL);

    private final Path uptimeFile;
    private final Path bootIdFile;

    /** The clock of this machine. */
    public BootClock() {
        this(Path.of("/proc/uptime"), Path.of("/proc/sys/kernel/random/boot_id"));
    }

    /** A clock that reads other files of the same format. */
    public BootClock(Path uptimeFile, Path bootIdFile) {
        this.uptimeFile = uptimeFile;
        this.bootIdFile = bootIdFile;
    }

    /**
     * Milliseconds since boot, suspended time included; the kernel's file has a resolution of 10 ms.
     *
     * @throws IOException if the file cannot be read or does not start with seconds and hundredths
     */
    public long uptimeMs() throws IOException {
        String text = Files.readString(uptimeFile, StandardCharsets.US_ASCII);
        Matcher matcher = UPTIME.matcher(text);
        if (!matcher.matches()) {
            throw new IOException(uptimeFile + " does not start with seconds and hundredths of a second");
        }
        return Long.parseLong(matcher.group(1)) * 1000 + Long.parseLong(matcher.group(2)) * 10;
    }

    /**
     * The identity of this boot, as the kernel writes it.
     *
     * @throws IOException if the file cannot be read or is empty
     */
    public String bootId() throws IOException {
        String text = Files.readString(bootIdFile, StandardCharsets.US_ASCII).strip();
        if (text.isEmpty()) {
            throw new IOException(bootIdFile + " is empty");
        }
        return text;
    }
}
