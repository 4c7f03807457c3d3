package org.kquota.decision;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;

@Tag("F21")
class DecisionFileTest {
    private static final byte[] CONTENT = {'{', '}'};

    @TempDir
    private Path temporary;
    private Path directory;
    private Path path;

    @BeforeEach
    void aDirectoryAsTheAgentHasIt() throws IOException {
        directory = Files.createDirectory(temporary.resolve("run"));
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
        path = directory.resolve("decision.json");
        Files.write(path, CONTENT);
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-r--r--"));
    }

    /** A file of which a new version is renamed into place just before it is opened for the first times. */
    private DecisionFile replacedAtOpenings(int openings) {
        return new DecisionFile(path) {
            private int left = openings;

            @Override
            SeekableByteChannel open() throws IOException {
                if (left-- > 0) {
                    Path next = directory.resolve("next");
                    Files.copy(path, next, StandardCopyOption.COPY_ATTRIBUTES);
                    Files.move(next, path, StandardCopyOption.ATOMIC_MOVE);
                }
                return super.open();
            }
        };
    }

    private void assertRefused(String because) {
        assertRefused(new DecisionFile(path), because);
    }

    private void assertRefused(DecisionFile file, String because) {
        Result<byte[]> result = file.read();
        assertNull(result.value());
        assertTrue(result.reason().contains(because), result.reason());
        assertTrue(result.reason().contains(path.toString()), result.reason());
    }

    @Test
    void aRegularFileThatOnlyItsOwnerWritesIsRead() {
        DecisionFile file = new DecisionFile(path);
        assertEquals(path, file.path());
        assertArrayEquals(CONTENT, file.read().value());
    }

    @Test
    void aSymbolicLinkIsRefused() throws IOException {
        Files.move(path, directory.resolve("real.json"));
        Files.createSymbolicLink(path, directory.resolve("real.json"));
        assertRefused("symbolic link");
    }

    @Test
    void aLinkInsteadOfTheDirectoryIsRefused() throws IOException {
        Path link = temporary.resolve("link");
        Files.createSymbolicLink(link, directory);
        path = link.resolve("decision.json");
        assertRefused("not in a directory");
    }

    @Test
    void aFileThatTheGroupCanWriteIsRefused() throws IOException {
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-rw-r--"));
        assertRefused("writable by group or others, mode 664");
    }

    @Test
    void aFileThatOthersCanWriteIsRefused() throws IOException {
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-r--rw-"));
        assertRefused("writable by group or others");
    }

    @Test
    void aDirectoryThatOthersCanWriteIsRefused() throws IOException {
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxrwxr-x"));
        assertRefused("directory that group or others can write, mode 775");
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xrwx"));
        assertRefused("directory that group or others can write");
    }

    @Test
    void aFileOfSomebodyElseIsRefused() {
        assertTrue(DecisionFile.objection(new DecisionFile.Inode(1001, 0100644, 1, 1), 1000).contains("uid 1001"));
        assertNull(DecisionFile.objection(new DecisionFile.Inode(1000, 0100644, 1, 1), 1000));
        assertNull(DecisionFile.objection(new DecisionFile.Inode(0, 0100644, 1, 1), 1000));
    }

    @Test
    void aDirectoryOrAPipeIsRefusedWithoutWaitingForIt() throws Exception {
        Files.delete(path);
        Files.createDirectory(path);
        assertRefused("not a regular file");
        Files.delete(path);
        new ProcessBuilder("mkfifo", path.toString()).start().waitFor();
        assertRefused("not a regular file");
    }

    @Test
    void aHugeFileIsRefused() throws IOException {
        Files.write(path, new byte[DecisionFile.MAX_BYTES + 1]);
        assertRefused("larger than");
        Files.write(path, new byte[DecisionFile.MAX_BYTES]);
        assertNull(new DecisionFile(path).read().reason());
    }

    /** The agent writes a new version every few seconds. */
    @Test
    void aFileThatIsReplacedWhileItIsOpenedIsReadAgain() {
        assertArrayEquals(CONTENT, replacedAtOpenings(4).read().value());
        assertRefused(replacedAtOpenings(5), "is replaced each time it is opened");
    }

    @Test
    void aFileThatCannotBeOpenedIsNotReadable() {
        assertRefused(new DecisionFile(path) {
            @Override
            SeekableByteChannel open() throws IOException {
                throw new AccessDeniedException(path.toString());
            }
        }, "is not readable: AccessDeniedException");
    }

    @Test
    @Tag("F25")
    void aMissingFileOrDirectoryIsMissing() throws IOException {
        Files.delete(path);
        assertRefused("is missing");
        Files.delete(directory);
        assertRefused("is missing");
    }
}
