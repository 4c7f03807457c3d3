package org.kquota;

import com.fasterxml.jackson.core.JsonPointer;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** The golden samples that all languages test against. */
public final class Golden {
    /** Numbers stay as they are written. */
    private static final JsonMapper JSON = JsonMapper.builder()
        .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
        .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
        .build();

    private Golden() {
    }

    /** A sample: a whole file, or a variant of a valid one. */
    public record Sample(String name, byte[] bytes) {
        @Override
        public String toString() {
            return name;
        }
    }

    /** The samples of a message, "valid" or "invalid". */
    public static Stream<Sample> samples(String message, String kind) {
        Path directory = Path.of(System.getProperty("kquota.schemas"), "samples", message);
        try {
            List<Sample> samples = new ArrayList<>();
            if (Files.isDirectory(directory.resolve(kind))) {
                try (Stream<Path> files = Files.list(directory.resolve(kind))) {
                    for (Path file : files.filter(one -> one.toString().endsWith(".json")).sorted().toList()) {
                        samples.add(new Sample(file.getFileName().toString(), Files.readAllBytes(file)));
                    }
                }
            }
            for (Map.Entry<String, JsonNode> one : JSON.readTree(directory.resolve("variants.json").toFile()).path(kind).properties()) {
                samples.add(new Sample(one.getKey(), varied(directory, one.getValue())));
            }
            if (samples.isEmpty()) {
                throw new IllegalStateException("no samples in " + directory);
            }
            return samples.stream();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static byte[] varied(Path directory, JsonNode variant) throws IOException {
        if (variant.has("text")) {
            return variant.get("text").textValue().getBytes(StandardCharsets.UTF_8);
        }
        JsonNode document = JSON.readTree(directory.resolve("valid").resolve(variant.get("of").textValue() + ".json").toFile());
        for (Map.Entry<String, JsonNode> one : variant.path("set").properties()) {
            JsonPointer place = JsonPointer.compile(one.getKey());
            if (document.at(place.head()) instanceof ArrayNode array) {
                array.set(place.last().getMatchingIndex(), one.getValue());
            } else {
                ((ObjectNode) document.at(place.head())).set(place.last().getMatchingProperty(), one.getValue());
            }
        }
        for (JsonNode one : variant.path("remove")) {
            JsonPointer place = JsonPointer.compile(one.textValue());
            ((ObjectNode) document.at(place.head())).remove(place.last().getMatchingProperty());
        }
        return JSON.writeValueAsBytes(document);
    }
}
