package org.kquota.maven;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import javax.inject.Named;
import javax.inject.Singleton;
import org.apache.maven.eventspy.AbstractEventSpy;
import org.eclipse.aether.RepositoryEvent;
import org.eclipse.aether.artifact.Artifact;

/**
 * Ends Maven when a file that it has resolved is not the one in the lock, before Maven reads or runs the file.
 *
 * <p>It compares dependencies, plug-ins, what plug-ins resolve, and the POMs of all, whether Maven has just fetched them or had them
 * in its local repository. With <code>kquota.lock.found</code> it accepts files that the lock does not name, and appends all
 * that it saw to that file, in the lock's format.
 */
@Named
@Singleton
public final class LockedArtifacts extends AbstractEventSpy {
    private static final int DIGITS = 64;

    private final String lock = System.getProperty("kquota.lock");
    private final String found = System.getProperty("kquota.lock.found");
    private final Map<String, String> locked;
    private final Set<Path> seen = ConcurrentHashMap.newKeySet();

    /** Reads the lock: a line has the SHA-256, two spaces and the path below the local repository. */
    public LockedArtifacts() {
        locked = read(lock);
    }

    @Override
    public void onEvent(Object event) {
        if (event instanceof RepositoryEvent) {
            RepositoryEvent resolved = (RepositoryEvent) event;
            if (resolved.getType() == RepositoryEvent.EventType.ARTIFACT_RESOLVED && resolved.getFile() != null) {
                Path repository = resolved.getSession().getLocalRepository().getBasedir().toPath();
                Path file = resolved.getFile().toPath();
                // Others are of the sources that Maven builds.
                if (file.startsWith(repository) && seen.add(file)) {
                    compare(resolved.getArtifact(), file, repository.relativize(file).toString());
                }
            }
        }
    }

    private void compare(Artifact artifact, Path file, String name) {
        String wanted = locked.get(name);
        String sha256 = sha256(file);
        if (found != null && (wanted == null || wanted.equals(sha256))) {
            append(sha256 + "  " + name + "\n");
        } else if (wanted == null) {
            end(artifact + " is not in " + lock + " (" + file + " has the SHA-256 " + sha256
                + "): if the build is meant to use it, run make lock");
        } else if (!wanted.equals(sha256)) {
            end(artifact + " is not the file that was locked: " + lock + " wants the SHA-256 " + wanted + ", but "
                + file + " has " + sha256 + ": delete that file, and if the next one is the same, do not trust its source");
        }
    }

    private static Map<String, String> read(String lock) {
        try (var lines = Files.lines(Path.of(lock))) {
            return lines.collect(Collectors.toMap(line -> line.substring(DIGITS + 2), line -> line.substring(0, DIGITS)));
        } catch (IOException | RuntimeException e) {
            return end("cannot read the lock " + lock + ": " + e);
        }
    }

    private void append(String line) {
        try {
            Files.writeString(Path.of(found), line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException e) {
            end("cannot write to " + found + ": " + e);
        }
    }

    private static String sha256(Path file) {
        try {
            return String.format("%0" + DIGITS + "x", new BigInteger(1, MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file))));
        } catch (IOException | NoSuchAlgorithmException e) {
            return end("cannot compare " + file + " with its lock: " + e);
        }
    }

    /** Not by an exception, because Maven logs those of its spies and continues. */
    private static <T> T end(String sentence) {
        System.err.println("[ERROR] " + sentence);
        Runtime.getRuntime().halt(1);
        throw new IllegalStateException(sentence);
    }
}
