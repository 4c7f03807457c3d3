package org.kquota.threshold;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.kquota.Golden;
import org.kquota.decision.Result;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.stream.Stream;

class ThresholdsFormatTest {
    static Stream<Golden.Sample> valid() {
        return Golden.samples("topics", "valid");
    }

    static Stream<Golden.Sample> invalid() {
        return Golden.samples("topics", "invalid");
    }

    @ParameterizedTest
    @MethodSource("valid")
    void everyValidSampleIsRead(Golden.Sample sample) {
        Result<TopicThresholds> result = ThresholdsFormat.parse(sample.bytes());
        assertTrue(result.isPresent(), () -> sample + ": " + result.reason());
    }

    @ParameterizedTest
    @MethodSource("invalid")
    void everyInvalidSampleIsRefusedWithAReason(Golden.Sample sample) {
        Result<TopicThresholds> result = ThresholdsFormat.parse(sample.bytes());
        assertFalse(result.isPresent(), sample.toString());
        assertNotNull(result.reason());
    }

    private static Result<TopicThresholds> parse(String json) {
        return ThresholdsFormat.parse(json.getBytes(StandardCharsets.UTF_8));
    }

    @Test
    @Tag("D1")
    void theNamesAreThoseOfTheDocument() {
        assertEquals(new TopicThresholds(100, Map.of("A", 40L)), parse("{\"schema_version\": 1, \"total.bytes.in.per.sec.threshold\": 100, "
            + "\"topics\": {\"A\": {\"bytes.in.per.sec.threshold\": 40}}}").value());
    }

    @Test
    void aReasonShowsEightyCharactersOfAValueOrThatItIsMissing() {
        assertEquals("schema_version is missing, allowed is 1", parse("{}").reason());
        String eighty = "\"" + "x".repeat(78) + "\"";
        assertEquals("schema_version is " + eighty + ", allowed is 1", parse("{\"schema_version\": " + eighty + "}").reason());
        assertEquals("schema_version is \"" + "x".repeat(79) + "…, allowed is 1", parse("{\"schema_version\": \"" + "x".repeat(79) + "\"}").reason());
    }

    @Test
    @Tag("D2")
    void whatNoSchemaCanSayIsRefusedToo() {
        assertTrue(parse("{\"schema_version\": 1, \"total.bytes.in.per.sec.threshold\": 100, \"topics\": {\"A\": {\"bytes.in.per.sec.threshold\": 81}, "
            + "\"B\": {\"bytes.in.per.sec.threshold\": 20}}}").reason().contains("add up to 101"));
        assertTrue(parse("{\"schema_version\": 1, \"total.bytes.in.per.sec.threshold\": 1, \"total.bytes.in.per.sec.threshold\": 2}").reason()
            .contains("Duplicate"));
    }
}
