package org.kquota.applied;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

class AppliedFileTest {
    @TempDir
    private Path directory;

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @Test
    void replacesTheFileAndLeavesNothingElse() throws IOException {
        AppliedFile file = new AppliedFile(directory.resolve("applied.json"));
        file.write(bytes("old"));
        file.write(bytes("new"));
        assertArrayEquals(bytes("new"), Files.readAllBytes(file.path()));
        assertEquals("rw-r--r--", PosixFilePermissions.toString(Files.getPosixFilePermissions(file.path())));
        try (Stream<Path> entries = Files.list(directory)) {
            assertEquals(List.of(file.path()), entries.toList());
        }
    }

    @Test
    void aReaderNeverSeesHalfOfIt() throws Exception {
        AppliedFile file = new AppliedFile(directory.resolve("applied.json"));
        byte[] one = bytes("1".repeat(100_000));
        byte[] two = bytes("2".repeat(200_000));
        file.write(one);
        AtomicInteger reads = new AtomicInteger();
        Thread writer = new Thread(() -> {
            for (int i = 0; i < 300 || reads.get() < 20; i++) {
                try {
                    file.write(i % 2 == 0 ? two : one);
                } catch (IOException e) {
                    throw new IllegalStateException(e);
                }
            }
        });
        writer.setDaemon(true);
        writer.start();
        while (writer.isAlive()) {
            byte[] seen = Files.readAllBytes(file.path());
            assertArrayEquals(seen[0] == '1' ? one : two, seen);
            reads.incrementAndGet();
        }
    }

    @Test
    void aStaleTemporaryFileOfADeadWriterIsNoObstacle() throws IOException {
        Path planted = directory.resolve("elsewhere");
        Files.createSymbolicLink(directory.resolve(".applied.json.tmp"), planted);
        AppliedFile file = new AppliedFile(directory.resolve("applied.json"));
        file.write(bytes("new"));
        assertArrayEquals(bytes("new"), Files.readAllBytes(file.path()));
        assertEquals(false, Files.exists(planted));
    }

    @Test
    void aMissingDirectoryIsAnErrorOfTheWriter() {
        AppliedFile file = new AppliedFile(directory.resolve("missing/applied.json"));
        assertThrows(IOException.class, () -> file.write(bytes("new")));
    }
}
