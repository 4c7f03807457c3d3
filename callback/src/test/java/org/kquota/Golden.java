package org.kquota;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** The golden samples that all languages test against. */
public final class Golden {
    private Golden() {
    }

    /** The samples of a message, "valid" or "invalid". */
    public static Stream<Path> samples(String message, String kind) {
        Path directory = Path.of(System.getProperty("kquota.schemas"), "samples", message, kind);
        try (Stream<Path> files = Files.list(directory)) {
            java.util.List<Path> samples = files.filter(file -> file.toString().endsWith(".json")).sorted().toList();
            if (samples.isEmpty()) {
                throw new IllegalStateException("no samples in " + directory);
            }
            return samples.stream();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
