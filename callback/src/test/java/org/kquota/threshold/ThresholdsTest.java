package org.kquota.threshold;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.kquota.TestProperties;
import org.kquota.config.KquotaConfig;
import org.kquota.error.Errors;
import org.kquota.share.LedPartitions;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.Set;

class ThresholdsTest {
    private static final long SECOND_NANOS = 1_000_000_000L;

    @TempDir
    private Path directory;
    private final Errors errors = new Errors();
    private boolean fails;

    private final class Rates implements BytesIn {
        @Override
        public double total() {
            if (fails) {
                throw new IllegalStateException("the meters cannot be read");
            }
            return 200;
        }

        @Override
        public double of(String topic) {
            return 50;
        }
    }

    private Thresholds thresholds() throws IOException {
        Path file = directory.resolve("topics.json");
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
        Files.writeString(file, "{\"schema_version\": 1, \"total.bytes.in.per.sec.threshold\": 100, "
            + "\"topics\": {\"own\": {\"bytes.in.per.sec.threshold\": 40}}}");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
        Thresholds thresholds = new Thresholds(file, Set.of("__kquota_volume_usage", "__kquota_history"), new Rates(), () -> null, errors);
        thresholds.read();
        return thresholds;
    }

    /** Which the thread that judges reads once a second, unless it hangs. */
    @Test
    void aTopicIsNotRefusedByRatesOfLongAgo() throws IOException {
        Thresholds thresholds = thresholds();
        long now = System.nanoTime();
        thresholds.judge(now);
        assertTrue(thresholds.isClosedFor("own"));
        assertTrue(thresholds.isClosedFor("own", now + 5 * SECOND_NANOS));
        assertFalse(thresholds.isClosedFor("own", now + 60 * SECOND_NANOS));
        thresholds.judge(now + 60 * SECOND_NANOS);
        assertTrue(thresholds.isClosedFor("own", now + 60 * SECOND_NANOS));
    }

    /** Of a total of 100 one has 40, and two others 30 each; with two topics of kquota among them each had 15. */
    @Test
    void topicsOfKquotaItselfTakeNoShareAndAreNotRefused() throws IOException {
        Thresholds thresholds = thresholds();
        LedPartitions.Count led = new LedPartitions.Count(1, 1);
        thresholds.update(new LedPartitions(Map.of("a", led, "b", led, "own", led, "__consumer_offsets", led,
            "__kquota_volume_usage", led, "__kquota_history", led)));
        assertEquals(List.of("a", "b", "own"), thresholds.topicsHere());
        thresholds.judge(System.nanoTime());
        assertEquals(Set.of("a", "b", "own"), thresholds.gate().over().keySet());
        assertEquals(30, thresholds.gate().over().get("a").threshold());
    }

    @Test
    void theirNamesAreThoseOfTheAgentsUnlessOthersAreGiven() {
        Map<String, Object> properties = TestProperties.broker(directory);
        assertEquals(Set.of("__kquota_volume_usage", "__kquota_history", "__kquota_orders"), new KquotaConfig(properties).ownTopics());
        properties.put(KquotaConfig.OWN_TOPICS, "usage, history");
        assertEquals(Set.of("usage", "history"), new KquotaConfig(properties).ownTopics());
    }

    @Test
    void aTopicIsNotRefusedForLongWhereRatesCannotBeRead() throws IOException {
        Thresholds thresholds = thresholds();
        long now = System.nanoTime();
        thresholds.judge(now);
        fails = true;
        thresholds.judge(now + 60 * SECOND_NANOS);
        assertEquals(1, errors.tally(Errors.Kind.THRESHOLDS).count());
        assertFalse(thresholds.isClosedFor("own", now + 60 * SECOND_NANOS));
    }
}
