package org.kquota.threshold;

import org.kquota.decision.DecisionFile;
import org.kquota.decision.Result;

import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Arrays;

/** The thresholds file, looked at again and again by one thread. A version that is refused changes nothing. */
public final class ThresholdsFile {
    private final Path path;
    private final DecisionFile file;
    private byte[] lastBytes;
    private volatile TopicThresholds inForce;
    private String refused;

    public ThresholdsFile(Path path) {
        this.path = path;
        this.file = new DecisionFile("thresholds file", path);
    }

    /** The result of a look: whether other thresholds are in force, or another version is refused, than before. */
    public enum Change { NONE, IN_FORCE, REFUSED }

    /** Looks at the file. */
    public Change look() {
        if (Files.notExists(path, LinkOption.NOFOLLOW_LINKS)) {
            lastBytes = null;
            return put(null);
        }
        Result<byte[]> read = file.read();
        if (!read.isPresent()) {
            lastBytes = null;
            return refuse(read.reason());
        }
        if (Arrays.equals(read.value(), lastBytes)) {
            return Change.NONE;
        }
        Result<TopicThresholds> parsed = ThresholdsFormat.parse(read.value());
        lastBytes = read.value();
        if (!parsed.isPresent()) {
            return refuse("thresholds file " + path + ": " + parsed.reason());
        }
        return put(parsed.value());
    }

    private Change put(TopicThresholds next) {
        boolean same = next == null ? inForce == null : next.equals(inForce);
        boolean wasRefused = refused != null;
        inForce = next;
        refused = null;
        return same && !wasRefused ? Change.NONE : Change.IN_FORCE;
    }

    private Change refuse(String reason) {
        boolean known = reason.equals(refused);
        refused = reason;
        return known ? Change.NONE : Change.REFUSED;
    }

    /** The thresholds in force: the last version that was accepted; null without a file. */
    public TopicThresholds inForce() {
        return inForce;
    }

    /** Why the present version of the file is refused, or null. */
    public String refused() {
        return refused;
    }
}
