package org.kquota.broker;

import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import java.util.Optional;

/** Remote storage that is a directory: a folder for each segment, with a file for each of its parts. Kafka publishes one with some versions only. */
public final class DirectoryStorage implements RemoteStorageManager {
    /** The name of the setting with the directory, below the prefix of the manager's settings. */
    static final String DIRECTORY = "dir";
    private static final String SEGMENT = "segment.log";

    private Path directory;

    /** As the broker needs it. */
    public DirectoryStorage() {
    }

    @Override
    public void configure(Map<String, ?> settings) {
        directory = Path.of((String) settings.get(DIRECTORY));
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data) throws RemoteStorageException {
        Path folder = folder(segment);
        try {
            Files.createDirectories(folder);
            copy(data.offsetIndex(), folder.resolve(IndexType.OFFSET.name()));
            copy(data.timeIndex(), folder.resolve(IndexType.TIMESTAMP.name()));
            copy(data.producerSnapshotIndex(), folder.resolve(IndexType.PRODUCER_SNAPSHOT.name()));
            if (data.transactionIndex().isPresent()) {
                copy(data.transactionIndex().get(), folder.resolve(IndexType.TRANSACTION.name()));
            }
            ByteBuffer epochs = data.leaderEpochIndex().duplicate();
            byte[] bytes = new byte[epochs.remaining()];
            epochs.get(bytes);
            Files.write(folder.resolve(IndexType.LEADER_EPOCH.name()), bytes);
            // The last one: who sees it sees all.
            copy(data.logSegment(), folder.resolve(SEGMENT));
        } catch (IOException e) {
            throw new RemoteStorageException("storing " + segment + " failed", e);
        }
        return Optional.empty();
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        return open(segment, SEGMENT, start);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end) throws RemoteStorageException {
        try (InputStream from = open(segment, SEGMENT, start)) {
            return new ByteArrayInputStream(from.readNBytes(end - start + 1));
        } catch (IOException e) {
            throw new RemoteStorageException("reading " + segment + " failed", e);
        }
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType index) throws RemoteStorageException {
        return open(segment, index.name(), 0);
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        Path folder = folder(segment);
        try {
            Files.deleteIfExists(folder.resolve(SEGMENT));
            for (IndexType index : IndexType.values()) {
                Files.deleteIfExists(folder.resolve(index.name()));
            }
            Files.deleteIfExists(folder);
        } catch (IOException e) {
            throw new RemoteStorageException("deleting " + segment + " failed", e);
        }
    }

    @Override
    public void close() {
    }

    private Path folder(RemoteLogSegmentMetadata segment) {
        return directory.resolve(segment.remoteLogSegmentId().id().toString());
    }

    private InputStream open(RemoteLogSegmentMetadata segment, String part, long start) throws RemoteStorageException {
        try {
            FileChannel file = FileChannel.open(folder(segment).resolve(part));
            file.position(start);
            return Channels.newInputStream(file);
        } catch (NoSuchFileException e) {
            throw new RemoteResourceNotFoundException(e);
        } catch (IOException e) {
            throw new RemoteStorageException("reading " + segment + " failed", e);
        }
    }

    private static void copy(Path from, Path to) throws IOException {
        Files.copy(from, to, StandardCopyOption.REPLACE_EXISTING);
    }
}
