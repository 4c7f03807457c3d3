package org.kquota.applied;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.kquota.Golden;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

class AppliedStateTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    static Stream<Golden.Sample> valid() {
        return Golden.samples("applied", "valid");
    }

    static Stream<Golden.Sample> invalid() {
        return Golden.samples("applied", "invalid");
    }

    @ParameterizedTest
    @MethodSource("valid")
    void validSamplesSurviveARoundTrip(Golden.Sample sample) throws IOException {
        JsonNode original = JSON.readTree(sample.bytes());
        AppliedState state = AppliedState.fromJson(sample.bytes());
        JsonNode written = JSON.readTree(state.toJson());
        assertEquals(known(original, written), written);
        assertEquals(state, AppliedState.fromJson(state.toJson()));
    }

    @ParameterizedTest
    @MethodSource("invalid")
    void invalidSamplesAreRefused(Golden.Sample sample) {
        assertThrows(IOException.class, () -> AppliedState.fromJson(sample.bytes()));
    }

    /** The original without the keys of newer versions. */
    private static JsonNode known(JsonNode original, JsonNode written) {
        if (original instanceof ObjectNode object) {
            ObjectNode copy = object.deepCopy();
            List<String> names = new ArrayList<>();
            copy.fieldNames().forEachRemaining(names::add);
            for (String name : names) {
                if (written.has(name)) {
                    copy.set(name, known(copy.get(name), written.get(name)));
                } else {
                    copy.remove(name);
                }
            }
            return copy;
        }
        return original;
    }
}
