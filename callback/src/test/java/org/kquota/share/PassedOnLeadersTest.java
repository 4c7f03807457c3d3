package org.kquota.share;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.re2j.Pattern;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.kquota.Golden;
import org.kquota.decision.Result;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.Stream;

class PassedOnLeadersTest {
    static Stream<Golden.Sample> valid() {
        return Golden.samples("leaders", "valid");
    }

    static Stream<Golden.Sample> invalid() {
        return Golden.samples("leaders", "invalid");
    }

    @ParameterizedTest
    @MethodSource("valid")
    void everyValidSampleIsRead(Golden.Sample sample) {
        Result<PassedOnLeaders> result = PassedOnLeaders.parse(sample.bytes());
        assertTrue(result.isPresent(), () -> sample + ": " + result.reason());
    }

    @ParameterizedTest
    @MethodSource("invalid")
    void everyInvalidSampleIsRefusedWithAReason(Golden.Sample sample) {
        Result<PassedOnLeaders> result = PassedOnLeaders.parse(sample.bytes());
        assertFalse(result.isPresent(), sample.toString());
        assertNotNull(result.reason());
    }

    private static Result<PassedOnLeaders> parse(int brokerId, String topics) {
        return PassedOnLeaders.parse(("{\"schema_version\": 1, \"cluster_id\": \"c\", \"broker_id\": " + brokerId
            + ", \"boot_id\": \"b\", \"seen_uptime_ms\": 7, \"topics\": {" + topics + "}}").getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void itHasWhatTheAgentHasSeen() {
        assertEquals(new PassedOnLeaders("c", 3, "b", 7, new LedPartitions(Map.of("orders", new LedPartitions.Count(8, 2)))),
            parse(3, "\"orders\": [2, 8]").value());
    }

    @Test
    void whatNoSchemaCanSayIsRefusedToo() {
        assertEquals("topics.orders is 9, allowed is a whole number from 0 to 8", parse(1, "\"orders\": [9, 8]").reason());
        assertTrue(parse(1, "\"orders\": [1, 8], \"orders\": [2, 8]").reason().contains("Duplicate"));
    }

    @Test
    void aReasonShowsEightyCharactersOfAValue() {
        String eighty = "\"" + "x".repeat(78) + "\"";
        assertEquals("topics.orders is " + eighty + ", allowed is a whole number from 0 to 2147483647", parse(1, "\"orders\": [1, " + eighty + "]").reason());
        assertEquals("topics.orders is \"" + "x".repeat(79) + "…, allowed is a whole number from 0 to 2147483647",
            parse(1, "\"orders\": [1, \"" + "x".repeat(79) + "\"]").reason());
    }

    /** As agents count them that have seen the same metadata. */
    @Test
    @Tag("C5")
    void theSharesOfAllBrokersThatLeadSomethingAddUpToTheWhole() {
        for (int seed = 0; seed < 200; seed++) {
            Random random = new Random(seed);
            int[] leaders = random.ints(3 + random.nextInt(60), 1, 4).toArray();
            Map<Integer, Long> led = java.util.Arrays.stream(leaders).boxed().collect(Collectors.groupingBy(node -> node, HashMap::new, Collectors.counting()));
            double sum = 0;
            for (int node = 1; node <= 3; node++) {
                PartitionShare here = new PartitionShare(Pattern.compile("orders.*"));
                here.update(parse(node, "\"orders\": [" + led.getOrDefault(node, 0L) + ", " + leaders.length + "], \"other\": [1, 5]").value().partitions());
                sum += here.count().led() == 0 ? 0 : here.ratio();
            }
            assertEquals(1, sum, 1e-9);
        }
    }
}
