package org.kquota.decision;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.Set;

/**
 * The decision file as seen by a reader that trusts only its owner: a regular file, no symbolic link, owned by root or
 * by the directory's owner, writable by no other user, in a directory that neither group nor others can write.
 */
public class DecisionFile {
    /** Nothing that kquota writes comes near this; a larger file is refused unread. */
    public static final int MAX_BYTES = 1024 * 1024;

    private static final int TYPE_MASK = 0170000;
    private static final int REGULAR = 0100000;
    private static final int SYMBOLIC_LINK = 0120000;
    private static final int DIRECTORY = 0040000;
    private static final int WRITABLE_BY_OTHERS = 0022;

    private static final int ATTEMPTS = 5;
    private static final Result<byte[]> REPLACED = Result.refused("replaced while it was opened");

    private final String what;
    private final Path path;

    public DecisionFile(Path path) {
        this("decision file", path);
    }

    /** Another file that is trusted on the same terms; <code>what</code> is its name in messages. */
    public DecisionFile(String what, Path path) {
        this.what = what;
        this.path = path;
    }

    public final Path path() {
        return path;
    }

    /** The file's bytes, or why they are not to be trusted; never throws. */
    public final Result<byte[]> read() {
        for (int attempt = 1; ; attempt++) {
            Result<byte[]> result = readOnce();
            // A new version renamed into place during the look is the usual way of writing, not a fault.
            if (result != REPLACED) {
                return result;
            }
            if (attempt == ATTEMPTS) {
                return refused("is replaced each time it is opened");
            }
        }
    }

    private Result<byte[]> readOnce() {
        try {
            Inode directory = inode(path.getParent());
            if (directory.type() != DIRECTORY) {
                return refused("is not in a directory");
            }
            if ((directory.mode() & WRITABLE_BY_OTHERS) != 0) {
                return refused("is in a directory that group or others can write, mode %o", directory.mode() & 07777);
            }
            Inode before = inode(path);
            String objection = objection(before, directory.uid());
            if (objection != null) {
                return refused("%s", objection);
            }
            byte[] bytes;
            // Only the directory's owner or root could swap the file between the checks: the same inode before and
            // after the opening proves that they did not.
            try (SeekableByteChannel channel = open()) {
                Inode after = inode(path);
                if (!before.sameFile(after)) {
                    return REPLACED;
                }
                bytes = readAtMost(channel, MAX_BYTES + 1);
            }
            return bytes.length > MAX_BYTES ? refused("is larger than %d bytes", MAX_BYTES) : Result.of(bytes);
        } catch (NoSuchFileException e) {
            return refused("is missing");
        } catch (IOException | UnsupportedOperationException | SecurityException e) {
            return refused("is not readable: %s: %s", e.getClass().getSimpleName(), e.getMessage());
        }
    }

    SeekableByteChannel open() throws IOException {
        return Files.newByteChannel(path, Set.of(StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS));
    }

    static String objection(Inode file, int directoryUid) {
        if (file.type() == SYMBOLIC_LINK) {
            return "is a symbolic link";
        }
        if (file.type() != REGULAR) {
            return "is not a regular file";
        }
        if (file.uid() != 0 && file.uid() != directoryUid) {
            return "is owned by uid " + file.uid() + ", neither root nor the directory's owner (uid " + directoryUid + ")";
        }
        if ((file.mode() & WRITABLE_BY_OTHERS) != 0) {
            return "is writable by group or others, mode " + Integer.toOctalString(file.mode() & 07777);
        }
        return null;
    }

    private Result<byte[]> refused(String format, Object... arguments) {
        return Result.refused(what + " " + path + " " + String.format(format, arguments));
    }

    private static byte[] readAtMost(SeekableByteChannel channel, int limit) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        ByteBuffer buffer = ByteBuffer.allocate(8192);
        while (bytes.size() < limit && channel.read(buffer) >= 0) {
            bytes.write(buffer.array(), 0, buffer.position());
            buffer.clear();
        }
        return bytes.toByteArray();
    }

    private static Inode inode(Path path) throws IOException {
        // Numbers only: a name look-up may ask a directory service and hang.
        Map<String, Object> attributes = Files.readAttributes(path, "unix:uid,mode,ino,dev", LinkOption.NOFOLLOW_LINKS);
        return new Inode((Integer) attributes.get("uid"), (Integer) attributes.get("mode"),
            (Long) attributes.get("ino"), (Long) attributes.get("dev"));
    }

    record Inode(int uid, int mode, long number, long device) {
        int type() {
            return mode & TYPE_MASK;
        }

        boolean sameFile(Inode other) {
            return number == other.number && device == other.device;
        }
    }
}
