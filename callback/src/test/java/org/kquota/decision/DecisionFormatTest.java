package org.kquota.decision;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.kquota.Golden;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;

class DecisionFormatTest {
    private static final String DECISION = "{\"schema_version\": 1, \"cluster_id\": \"c\", \"broker_id\": 1, \"sequence\": 42, "
        + "\"mode\": \"enforce\", \"state\": \"THROTTLE\", \"factor\": 0.42, \"boot_id\": \"b\", \"valid_until_uptime_ms\": 7}";

    static Stream<Golden.Sample> valid() {
        return Golden.samples("decision", "valid");
    }

    static Stream<Golden.Sample> invalid() {
        return Golden.samples("decision", "invalid");
    }

    private static Result<Decision> parse(String json) {
        return DecisionFormat.parse(json.getBytes(StandardCharsets.UTF_8));
    }

    @ParameterizedTest
    @MethodSource("valid")
    @Tag("F26")
    void validSamplesAreReadAsTheyStand(Golden.Sample sample) throws IOException {
        JsonNode expected = new ObjectMapper().readTree(sample.bytes());
        Result<Decision> result = DecisionFormat.parse(sample.bytes());
        assertNull(result.reason());
        Decision decision = result.value();
        assertEquals(expected.get("schema_version").intValue(), decision.schemaVersion());
        assertEquals(expected.get("cluster_id").textValue(), decision.clusterId());
        assertEquals(expected.get("broker_id").intValue(), decision.brokerId());
        assertEquals(expected.get("sequence").longValue(), decision.sequence());
        assertEquals(expected.get("mode").textValue(), decision.mode().text());
        assertEquals(expected.get("state").textValue(), decision.state().name());
        assertEquals(expected.get("factor").doubleValue(), decision.factor());
        assertEquals(expected.path("scope").asText("cluster").equals("topics"), decision.topics() != null);
        if (decision.topics() != null) {
            expected.get("topics").properties().forEach(topic -> assertEquals(topic.getValue().doubleValue(), decision.topics().of(topic.getKey())));
            assertEquals(expected.path("other_topics_factor").asDouble(1), decision.topics().others());
        }
        assertEquals(expected.get("fallback").booleanValue(), decision.fallback());
        assertEquals(expected.get("boot_id").textValue(), decision.bootId());
        assertEquals(expected.get("valid_until_uptime_ms").longValue(), decision.validUntilUptimeMs());
    }

    @ParameterizedTest
    @MethodSource("invalid")
    @Tag("F21")
    void invalidSamplesAreRefusedWithAReason(Golden.Sample sample) {
        Result<Decision> result = DecisionFormat.parse(sample.bytes());
        assertNull(result.value());
        assertNotNull(result.reason());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "{", "42", "\"text\"", "[]", "null", "{}", "{} {}"})
    @Tag("F21")
    void whatIsNoDecisionIsRefused(String text) {
        assertNull(parse(text).value());
    }

    @Test
    @Tag("F21")
    void aKeyGivenTwiceIsRefused() {
        assertTrue(parse(DECISION.replace("\"sequence\"", "\"state\": \"OPEN\", \"sequence\"")).reason().contains("state"));
    }

    @Test
    @Tag("F21")
    void textAfterTheObjectIsRefused() {
        assertNotNull(parse(DECISION).value());
        assertNull(parse(DECISION + "x").value());
        assertNull(parse(DECISION + DECISION).value());
    }

    @Test
    void theReasonNamesKeyValueAndWhatIsAllowed() {
        assertEquals("decision's mode is \"off\", allowed is one of observe, enforce",
            parse(DECISION.replace("\"enforce\"", "\"off\"")).reason());
        assertEquals("decision's sequence is missing, allowed is an integer from 0 to 9223372036854775807",
            parse(DECISION.replace("\"sequence\"", "\"sequences\"")).reason());
    }

    @ParameterizedTest
    @CsvSource({"hold,an object or null,{}", "reasons,an array,[]", "undetermined,an array,[]", "decided_at,a text,\"now\"", "valid_until,a text,\"then\""})
    void whatIsOnlyForPeopleHasToBeOfItsType(String field, String allowed, String good) {
        assertEquals("decision's " + field + " is 1, allowed is " + allowed, parse(DECISION.replace("{", "{\"" + field + "\": 1, ")).reason());
        for (String value : List.of(good, "null")) {
            assertNotNull(parse(DECISION.replace("{", "{\"" + field + "\": " + value + ", ")).value());
        }
    }

    private static List<OwnLogDir> ownLogDirs(String json) {
        return parse(DECISION.replace("{", "{\"own_log_dirs\": " + json + ", ")).value().ownLogDirs();
    }

    @Test
    void theOwnLogDirsAreReadWithTheirFigures() {
        String first = "{\"log_dir\": \"/a\", \"soft_available_bytes\": 1, \"hard_available_bytes\": 0}";
        String second = "{\"log_dir\": \"/b\", \"soft_available_bytes\": 0, \"hard_available_bytes\": -1}";
        assertEquals(List.of(new OwnLogDir("/a", 1, 0), new OwnLogDir("/b", 0, -1)), ownLogDirs("[" + first + ", " + second + "]"));
        assertEquals(List.of(), ownLogDirs("[]"));
        assertNull(ownLogDirs("null"));
        assertNull(parse(DECISION).value().ownLogDirs(), "an agent of before names none");
        assertEquals("decision's own_log_dirs is {}, allowed is an array", parse(DECISION.replace("{", "{\"own_log_dirs\": {}, ")).reason());
        assertEquals("decision's soft_available_bytes is 0, allowed is an integer from 1 to 9223372036854775807",
            parse(DECISION.replace("{", "{\"own_log_dirs\": [" + first.replace("1", "0") + "], ")).reason());
    }

    private static String withScope(String keys) {
        return DECISION.replace("\"boot_id\"", keys + ", \"boot_id\"");
    }

    @Test
    @Tag("F21")
    void factorsOfTopicsThatAreMalformedRefuseTheFile() {
        String scope = "\"scope\": \"topics\", ";
        assertEquals("decision's topics is missing, allowed is an object with the factor of each topic, because scope is topics",
            parse(withScope("\"scope\": \"topics\"")).reason());
        assertEquals("decision's topics is [], allowed is an object with the factor of each topic, because scope is topics",
            parse(withScope(scope + "\"topics\": []")).reason());
        assertEquals("decision's topics is \"a b\", allowed is names of topics", parse(withScope(scope + "\"topics\": {\"a b\": 1}")).reason());
        for (String name : List.of("", "x".repeat(250), "größe")) {
            assertNull(parse(withScope(scope + "\"topics\": {\"" + name + "\": 1}")).value(), name);
        }
        for (String factor : List.of("1.1", "-0.1", "\"0.5\"", "null", "{}", "0.41")) {
            assertEquals("decision's topics.orders is " + factor + ", allowed is a number from 0.42, the decision's factor, to 1",
                parse(withScope(scope + "\"topics\": {\"orders\": " + factor + "}")).reason());
            assertEquals("decision's other_topics_factor is " + factor + ", allowed is a number from 0.42, the decision's factor, to 1",
                parse(withScope(scope + "\"topics\": {}, \"other_topics_factor\": " + factor)).reason());
        }
        assertTrue(parse(withScope(scope + "\"topics\": {\"orders\": 0.5, \"orders\": 0.6}")).reason().contains("orders"));
    }

    @Test
    void aScopeThatIsNotKnownIsTheCluster() {
        for (String scope : List.of("\"cluster\"", "\"volumes\"", "7", "null")) {
            assertNull(parse(withScope("\"scope\": " + scope + ", \"topics\": 7")).value().topics());
        }
        assertNull(parse(DECISION).value().topics());
    }

    /** As many topics as a file of its largest size has, read ten times in less time than a reader that were quadratic would take for one. */
    @Test
    void tenTimesTheTopicsTakeAboutTenTimesAsLong() {
        String many = withTopics(13_000);
        assertTrue(many.length() <= DecisionFile.MAX_BYTES && many.length() > DecisionFile.MAX_BYTES - 100_000, "of " + many.length() + " bytes");
        assertEquals(13_000, parse(many).value().topics().throttled());
        long few = shortestNanos(withTopics(1_300)), most = shortestNanos(many);
        assertTrue(most < 30 * few, most + " ns of the processor, and " + few + " for a tenth");
    }

    private static String withTopics(int count) {
        String topics = IntStream.range(0, count).mapToObj(i -> "\"" + "t".repeat(60) + i + "\": 0.5").collect(Collectors.joining(", "));
        return withScope("\"scope\": \"topics\", \"topics\": {" + topics + "}");
    }

    private static long shortestNanos(String json) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        return LongStream.range(0, 20).map(i -> {
            long begun = threads.getCurrentThreadCpuTime();
            parse(json);
            return threads.getCurrentThreadCpuTime() - begun;
        }).min().orElseThrow();
    }

    @Test
    void textsHaveABound() {
        assertEquals(1024, parse(DECISION.replace("\"c\"", "\"" + "c".repeat(1024) + "\"")).value().clusterId().length());
        assertTrue(parse(DECISION.replace("\"c\"", "\"" + "c".repeat(1025) + "\"")).reason().endsWith("a text of 1 to 1024 characters"));
    }

    @Test
    void aReasonShowsEightyCharactersOfAValue() {
        String shown = "\"" + "x".repeat(78) + "\"";
        assertTrue(parse(DECISION.replace("\"enforce\"", shown)).reason().contains("mode is " + shown + ", allowed"));
        assertTrue(parse(DECISION.replace("\"enforce\"", "\"" + "x".repeat(79) + "\"")).reason().contains("mode is \"" + "x".repeat(79) + "…, allowed"));
    }

    @Test
    void aModeIsKnownByItsSpelling() {
        assertEquals(Mode.ENFORCE, Mode.of("enforce"));
        assertEquals(Mode.OBSERVE, Mode.of("observe"));
        assertNull(Mode.of("ENFORCE"));
    }

    @Test
    @Tag("F21")
    void textThatIsNotUtf8IsRefused() {
        byte[] bytes = DECISION.getBytes(StandardCharsets.UTF_8);
        bytes[DECISION.indexOf("\"c\"") + 1] = (byte) 0xff;
        assertEquals("decision is not UTF-8 text", DecisionFormat.parse(bytes).reason());
    }

    @Test
    @Tag("F21")
    void deepNestingIsRefused() {
        assertNull(parse(DECISION.replace("{\"schema", "{\"deep\":" + "[".repeat(50_000) + "]".repeat(50_000) + ",\"schema")).value());
    }

    @Test
    @Tag("F21")
    void randomDamageIsRefusedOrReadButNeverThrows() {
        Random random = new Random(1);
        int refused = 0;
        for (int i = 0; i < 20_000; i++) {
            byte[] bytes = DECISION.getBytes(StandardCharsets.UTF_8);
            for (int changes = random.nextInt(4); changes >= 0; changes--) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(256);
            }
            Result<Decision> result = DecisionFormat.parse(bytes);
            if (result.isPresent()) {
                double factor = result.value().factor();
                assertTrue(factor > 0 && factor < 1, "a damaged file must not contradict itself");
            } else {
                refused++;
            }
        }
        assertTrue(refused > 15_000);
    }
}
