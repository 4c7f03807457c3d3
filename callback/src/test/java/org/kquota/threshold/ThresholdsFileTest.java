package org.kquota.threshold;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.threshold.ThresholdsFile.Change;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

class ThresholdsFileTest {
    @TempDir
    private Path directory;
    private Path path;
    private ThresholdsFile file;

    @BeforeEach
    void trusted() throws IOException {
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
        path = directory.resolve("topics.json");
        file = new ThresholdsFile(path);
    }

    private Change write(long total, long ofA) throws IOException {
        Files.deleteIfExists(path);
        Files.writeString(path, "{\"schema_version\": 1, \"total.bytes.in.per.sec.threshold\": " + total
            + ", \"topics\": {\"A\": {\"bytes.in.per.sec.threshold\": " + ofA + "}}}");
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-r--r--"));
        return file.look();
    }

    @Test
    void withoutAFileNothingIsInForce() {
        assertEquals(Change.NONE, file.look());
        assertNull(file.inForce());
    }

    @Test
    @Tag("D4")
    void aChangeIsInForceAtTheNextLook() throws IOException {
        assertEquals(Change.IN_FORCE, write(100, 40));
        assertEquals(Change.NONE, file.look());
        assertEquals(Change.IN_FORCE, write(100, 41));
        assertEquals(41, file.inForce().explicit().get("A"));
        Files.delete(path);
        assertEquals(Change.IN_FORCE, file.look());
        assertNull(file.inForce());
    }

    @Test
    @Tag("D2")
    void whatDoesNotAddUpIsRejectedOnceAndWhatWasThereStays() throws IOException {
        write(100, 40);
        assertEquals(Change.REFUSED, write(100, 101));
        assertEquals(Change.NONE, file.look(), "reported once");
        assertTrue(file.refused().contains(path.toString()) && file.refused().contains("at most the total of 100"), file.refused());
        assertEquals(40, file.inForce().explicit().get("A"));
        assertEquals(Change.IN_FORCE, write(100, 40));
        assertNull(file.refused());
    }

    @Test
    void aFileThatOthersCanWriteIsRefusedAndAcceptedWhenTheyNoLongerCan() throws IOException {
        write(100, 40);
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-rw-r--"));
        assertEquals(Change.REFUSED, file.look());
        assertTrue(file.refused().contains("thresholds file " + path), file.refused());
        assertEquals(40, file.inForce().explicit().get("A"));
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-r--r--"));
        assertEquals(Change.IN_FORCE, file.look());
        assertNull(file.refused());
    }
}
