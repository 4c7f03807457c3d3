package org.kquota.threshold;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.kquota.decision.Result;

import java.io.IOException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/** Reads the JSON of a thresholds file, strictly: an unknown key is refused, since a misspelt threshold would be none. */
public final class ThresholdsFormat {
    /** The schema version this class was written for. */
    public static final int SCHEMA_VERSION = 1;

    private static final String TOTAL = "total.bytes.in.per.sec.threshold";
    private static final String OWN = "bytes.in.per.sec.threshold";
    private static final Set<String> KEYS = Set.of("schema_version", TOTAL, "topics");
    private static final Pattern TOPIC = Pattern.compile("[a-zA-Z0-9._-]{1,249}");
    private static final ObjectMapper MAPPER = new ObjectMapper(JsonFactory.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .streamReadConstraints(StreamReadConstraints.builder().maxNestingDepth(8).maxNumberLength(32).build())
            .build())
        .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    private ThresholdsFormat() {
    }

    /** The thresholds in these bytes, or the reason why there are none; never throws. */
    public static Result<TopicThresholds> parse(byte[] json) {
        try {
            JsonNode tree = MAPPER.readTree(json);
            if (!tree.isObject()) {
                throw new IllegalArgumentException("it is no JSON object");
            }
            refuseUnknown(tree, KEYS, "");
            JsonNode version = tree.path("schema_version");
            if (!version.isInt() || version.intValue() != SCHEMA_VERSION) {
                throw new IllegalArgumentException("schema_version is " + shown(version) + ", allowed is " + SCHEMA_VERSION);
            }
            return Result.of(new TopicThresholds(rate(tree, TOTAL, ""), topics(tree)));
        } catch (JsonProcessingException e) {
            return Result.refused("it is no JSON: " + e.getOriginalMessage());
        } catch (IOException | IllegalArgumentException e) {
            return Result.refused(e.getMessage());
        }
    }

    private static Map<String, Long> topics(JsonNode tree) {
        JsonNode topics = tree.path("topics");
        if (!topics.isMissingNode() && !topics.isObject()) {
            throw new IllegalArgumentException("topics is " + shown(topics) + ", allowed is an object with the names of topics");
        }
        Map<String, Long> explicit = new HashMap<>();
        for (Map.Entry<String, JsonNode> entry : topics.properties()) {
            String topic = entry.getKey();
            String place = "topics." + topic + ".";
            if (!TOPIC.matcher(topic).matches()) {
                throw new IllegalArgumentException("'" + topic + "' is no name of a topic");
            }
            if (!entry.getValue().isObject()) {
                throw new IllegalArgumentException("topics." + topic + " is " + shown(entry.getValue()) + ", allowed is an object with " + OWN);
            }
            refuseUnknown(entry.getValue(), Set.of(OWN), place);
            explicit.put(topic, rate(entry.getValue(), OWN, place));
        }
        return explicit;
    }

    private static long rate(JsonNode object, String key, String place) {
        JsonNode rate = object.path(key);
        if (!rate.isIntegralNumber() || !rate.canConvertToLong() || rate.longValue() < 0) {
            throw new IllegalArgumentException(place + key + " is " + shown(rate) + ", allowed is a whole number of bytes per second, at least 0");
        }
        return rate.longValue();
    }

    private static void refuseUnknown(JsonNode object, Set<String> known, String place) {
        for (Iterator<String> names = object.fieldNames(); names.hasNext(); ) {
            String name = names.next();
            if (!known.contains(name)) {
                throw new IllegalArgumentException("there is no key " + place + name + ", allowed are " + String.join(", ", known.stream().sorted().toList()));
            }
        }
    }

    private static String shown(JsonNode value) {
        String text = value.isMissingNode() ? "missing" : value.toString();
        return text.length() <= 80 ? text : text.substring(0, 80) + "…";
    }
}
