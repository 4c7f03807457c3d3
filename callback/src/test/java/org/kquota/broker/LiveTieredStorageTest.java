package org.kquota.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.applied.AppliedState;
import org.kquota.applied.AppliedState.Mechanism;
import org.kquota.decision.State;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;

/** Tiered storage frees disks, so a pause must not hold it: a real broker with remote storage in a directory. */
class LiveTieredStorageTest {
    private static final String TOPIC = "tiered";
    private static final TopicPartition PARTITION = new TopicPartition(TOPIC, 0);
    private static final int SEGMENT_BYTES = 1_048_576;
    private static final int SEGMENTS = 6;
    private static final int RECORD_BYTES = 10_000;

    @TempDir
    private Path directory;

    private Map<String, String> settings(String metadataWriter) {
        String client = "rlmm.config.remote.log.metadata.common.client.";
        return new TreeMap<>(Map.of(
            "remote.log.storage.system.enable", "true",
            "remote.log.storage.manager.class.name", DirectoryStorage.class.getName(),
            "rsm.config." + DirectoryStorage.DIRECTORY, directory.resolve("remote").toString(),
            "remote.log.metadata.manager.listener.name", "CLIENTS",
            "rlmm.config.remote.log.metadata.topic.replication.factor", "1",
            "rlmm.config.remote.log.metadata.topic.num.partitions", "1",
            client + "sasl.mechanism", "PLAIN",
            client + "sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"" + metadataWriter
                + "\" password=\"" + metadataWriter + "-pass\";",
            "remote.log.manager.task.interval.ms", "500",
            "log.retention.check.interval.ms", "500"));
    }

    @Test
    @Tag("long")
    @Tag("F33")
    void inAPauseSegmentsAreUploadedAndFreed() throws Exception {
        uploadsInAPause(LiveBroker.AGENT, Mechanism.GOVERNOR);
    }

    @Test
    @Tag("F33")
    @Tag("long")
    void behindTheFenceToo() throws Exception {
        uploadsInAPause(LiveBroker.AGENT, Mechanism.FENCE);
    }

    @Test
    @Tag("F33")
    @Tag("long")
    void aMetadataWriterThatIsNotExemptIsReported() throws Exception {
        try (LiveBroker broker = new LiveBroker(directory, settings("dave")); Admin admin = broker.admin()) {
            decideOpen(broker);
            fill(broker, admin);
            makeTiered(admin);
            broker.awaitApplied("the error is reported", applied -> errors(applied) > 0);
            assertTrue(broker.log().contains("User:dave"), "in the log too");
        }
    }

    private void uploadsInAPause(String metadataWriter, Mechanism mechanism) throws Exception {
        Map<String, String> settings = settings(metadataWriter);
        if (mechanism == Mechanism.FENCE) {
            settings.putAll(LiveFenceTest.FENCED);
        }
        try (LiveBroker broker = new LiveBroker(directory, settings); Admin admin = broker.admin()) {
            decideOpen(broker);
            fill(broker, admin);
            broker.decide("PAUSE", 0, "enforce", 600_000);
            broker.awaitApplied("PAUSE", applied -> applied.mechanism() == mechanism);
            long end = offset(admin, OffsetSpec.latest());
            makeTiered(admin);
            LiveBroker.await("segments are uploaded", () -> uploaded() >= SEGMENTS - 1);
            LiveBroker.await("segments are freed", () -> offset(admin, OffsetSpec.earliestLocal()) > 0);
            assertEquals(0, offset(admin, OffsetSpec.earliest()), "and can still be read");
            assertEquals(end, offset(admin, OffsetSpec.latest()));
            assertEquals(State.PAUSE, broker.applied().state());
            assertEquals(0, errors(broker.applied()), "the broker's principal is exempt");
        }
    }

    private static void decideOpen(LiveBroker broker) throws Exception {
        broker.decide("OPEN", 1, "enforce", 600_000);
        broker.awaitApplied("OPEN", applied -> applied.state() == State.OPEN && applied.lost() == null);
    }

    private static void fill(LiveBroker broker, Admin admin) throws Exception {
        admin.createTopics(List.of(new NewTopic(TOPIC, 1, (short) 1).configs(Map.of("segment.bytes", String.valueOf(SEGMENT_BYTES))))).all().get();
        try (KafkaProducer<byte[], byte[]> producer = broker.producer("alice", "app")) {
            for (int i = 0; i < SEGMENTS * SEGMENT_BYTES / RECORD_BYTES; i++) {
                producer.send(new ProducerRecord<>(TOPIC, new byte[RECORD_BYTES]));
            }
            producer.flush();
        }
    }

    private static void makeTiered(Admin admin) throws Exception {
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, TOPIC), List.of(
            new AlterConfigOp(new ConfigEntry("remote.storage.enable", "true"), AlterConfigOp.OpType.SET),
            new AlterConfigOp(new ConfigEntry("local.retention.bytes", String.valueOf(SEGMENT_BYTES)), AlterConfigOp.OpType.SET)))).all().get();
    }

    private static long offset(Admin admin, OffsetSpec spec) {
        try {
            return admin.listOffsets(Map.of(PARTITION, spec)).partitionResult(PARTITION).get().offset();
        } catch (ExecutionException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private long uploaded() {
        try (Stream<Path> files = Files.walk(directory.resolve("remote"))) {
            return files.filter(file -> file.toString().endsWith(".log")).count();
        } catch (IOException e) {
            // It moves files while we look.
            return 0;
        }
    }

    private static long errors(AppliedState applied) {
        return applied.errors().stream().filter(error -> error.kind().equals("tiered_storage")).mapToLong(AppliedState.Error::count).sum();
    }
}
