package org.kquota.applied;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;

/** The applied-state file, replaced whole: a reader sees the old version or the new one, never half. */
public final class AppliedFile {
    private final Path path;
    private final Path temporary;

    public AppliedFile(Path path) {
        this.path = path;
        this.temporary = path.resolveSibling("." + path.getFileName() + ".tmp");
    }

    public Path path() {
        return path;
    }

    /**
     * Replaces the file by these bytes, readable by every user.
     *
     * @throws IOException if the directory is missing, full or not writable; the old version is then intact
     */
    public void write(byte[] bytes) throws IOException {
        Files.deleteIfExists(temporary);
        try (FileChannel channel = FileChannel.open(temporary, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            ByteBuffer buffer = ByteBuffer.wrap(bytes);
            while (buffer.hasRemaining()) {
                channel.write(buffer);
            }
            // The agent runs as another user, whatever the broker's umask is.
            Files.setPosixFilePermissions(temporary, PosixFilePermissions.fromString("rw-r--r--"));
            channel.force(true);
        }
        Files.move(temporary, path, StandardCopyOption.ATOMIC_MOVE);
        try (FileChannel directory = FileChannel.open(path.getParent(), StandardOpenOption.READ)) {
            directory.force(true);
        }
    }
}
