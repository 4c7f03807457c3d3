package org.kquota.share;

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
import java.util.Map;
import java.util.regex.Pattern;

/**
 * The content of a leaders file: what the agent of this broker has seen in the cluster's metadata. schemas/leaders.schema.json is its contract: keys that it
 * does not name are ignored, and so is a higher schema_version.
 *
 * @param seenUptimeMs when the agent asked for them, milliseconds since boot
 */
public record PassedOnLeaders(String clusterId, int brokerId, String bootId, long seenUptimeMs, LedPartitions partitions) {
    private static final Pattern TOPIC = Pattern.compile("[a-zA-Z0-9._-]{1,249}");
    private static final int MAX_TEXT = 1024;
    private static final int SHOWN = 80;
    private static final ObjectMapper MAPPER = new ObjectMapper(JsonFactory.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .streamReadConstraints(StreamReadConstraints.builder().maxNestingDepth(8).maxNumberLength(32).build())
            .build())
        .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    /** The leaders in these bytes, or the reason why there are none; never throws. */
    public static Result<PassedOnLeaders> parse(byte[] json) {
        try {
            JsonNode tree = MAPPER.readTree(json);
            if (!tree.isObject()) {
                return Result.refused("it is no JSON object");
            }
            integer(tree.path("schema_version"), "schema_version", 1, Integer.MAX_VALUE);
            return Result.of(new PassedOnLeaders(text(tree, "cluster_id"), (int) integer(tree.path("broker_id"), "broker_id", 0, Integer.MAX_VALUE),
                text(tree, "boot_id"), integer(tree.path("seen_uptime_ms"), "seen_uptime_ms", 0, Long.MAX_VALUE), partitions(tree.path("topics"))));
        } catch (JsonProcessingException e) {
            return Result.refused("it is no JSON: " + e.getOriginalMessage());
        } catch (IOException | IllegalArgumentException e) {
            return Result.refused(e.getMessage());
        }
    }

    private static LedPartitions partitions(JsonNode topics) {
        if (!topics.isObject()) {
            throw refused("topics", topics, "an object with the counts of each topic");
        }
        Map<String, LedPartitions.Count> counts = new HashMap<>();
        for (Map.Entry<String, JsonNode> topic : topics.properties()) {
            if (!TOPIC.matcher(topic.getKey()).matches()) {
                throw new IllegalArgumentException("'" + topic.getKey() + "' is no name of a topic");
            }
            String place = "topics." + topic.getKey();
            int all = (int) integer(topic.getValue().path(1), place, 0, Integer.MAX_VALUE);
            counts.put(topic.getKey(), new LedPartitions.Count(all, (int) integer(topic.getValue().path(0), place, 0, all)));
        }
        return new LedPartitions(counts);
    }

    private static long integer(JsonNode node, String place, long min, long max) {
        if (!node.isIntegralNumber() || !node.canConvertToLong() || node.longValue() < min || node.longValue() > max) {
            throw refused(place, node, "a whole number from " + min + " to " + max);
        }
        return node.longValue();
    }

    private static String text(JsonNode tree, String key) {
        JsonNode node = tree.path(key);
        if (!node.isTextual() || node.textValue().isEmpty() || node.textValue().length() > MAX_TEXT) {
            throw refused(key, node, "a text of 1 to " + MAX_TEXT + " characters");
        }
        return node.textValue();
    }

    private static IllegalArgumentException refused(String place, JsonNode node, String allowed) {
        String text = node.isMissingNode() ? "missing" : node.toString();
        return new IllegalArgumentException(place + " is " + (text.length() <= SHOWN ? text : text.substring(0, SHOWN) + "…") + ", allowed is " + allowed);
    }
}
