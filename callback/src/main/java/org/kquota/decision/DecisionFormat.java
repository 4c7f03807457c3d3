package org.kquota.decision;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.TextNode;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Reads the JSON of a decision file, strictly: duplicate keys, trailing text, wrong types and a factor that contradicts
 * the state are refused. Keys it does not know are ignored, a scope it does not know is the cluster, and a higher schema_version is read as long as the fields it
 * needs are there.
 */
public final class DecisionFormat {
    /** The schema version this class was written for. */
    public static final int SCHEMA_VERSION = 1;

    private static final int MAX_TEXT = 1024;
    private static final Pattern TOPIC = Pattern.compile("[a-zA-Z0-9._-]{1,249}");

    private static final ObjectMapper MAPPER = new ObjectMapper(JsonFactory.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .streamReadConstraints(StreamReadConstraints.builder().maxNestingDepth(32).maxNumberLength(64).build())
            .build())
        .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    private DecisionFormat() {
    }

    /** The decision in these bytes, or the reason why there is none; never throws. */
    public static Result<Decision> parse(byte[] json) {
        try {
            String text = StandardCharsets.UTF_8.newDecoder()
                .onMalformedInput(CodingErrorAction.REPORT)
                .onUnmappableCharacter(CodingErrorAction.REPORT)
                .decode(ByteBuffer.wrap(json)).toString();
            JsonNode root = MAPPER.readTree(text);
            if (root == null || !root.isObject()) {
                return Result.refused("decision is not a JSON object");
            }
            return Result.of(decision(root));
        } catch (CharacterCodingException e) {
            return Result.refused("decision is not UTF-8 text");
        } catch (JsonProcessingException e) {
            String where = e.getLocation() == null ? "" :
                " at line " + e.getLocation().getLineNr() + ", column " + e.getLocation().getColumnNr();
            return Result.refused("decision is not valid JSON" + where + ": " + e.getOriginalMessage());
        } catch (FieldRefused e) {
            return Result.refused("decision's " + e.getMessage());
        }
    }

    private static Decision decision(JsonNode root) throws FieldRefused {
        int schemaVersion = (int) integer(root, "schema_version", 1, Integer.MAX_VALUE);
        Mode mode = choice(root, "mode", Mode.values(), Mode::text);
        State state = choice(root, "state", State.values(), State::name);
        JsonNode fallback = root.path("fallback");
        if (!fallback.isMissingNode() && !fallback.isBoolean()) {
            throw new FieldRefused("fallback", fallback, "true or false");
        }
        optional(root, "hold", root.path("hold").isObject(), "an object or null");
        optional(root, "reasons", root.path("reasons").isArray(), "an array");
        optional(root, "undetermined", root.path("undetermined").isArray(), "an array");
        optional(root, "decided_at", root.path("decided_at").isTextual(), "a text");
        optional(root, "valid_until", root.path("valid_until").isTextual(), "a text");
        double factor = factor(root, state);
        return new Decision(
            schemaVersion,
            text(root, "cluster_id"),
            (int) integer(root, "broker_id", 0, Integer.MAX_VALUE),
            integer(root, "sequence", 0, Long.MAX_VALUE),
            mode,
            state,
            factor,
            Scope.TOPICS.text().equals(root.path("scope").textValue()) ? topics(root, factor) : null,
            fallback.asBoolean(false),
            text(root, "boot_id"),
            integer(root, "valid_until_uptime_ms", 0, Long.MAX_VALUE),
            ownLogDirs(root.path("own_log_dirs")));
    }

    private static List<OwnLogDir> ownLogDirs(JsonNode node) throws FieldRefused {
        if (node.isMissingNode() || node.isNull()) {
            return null;
        }
        if (!node.isArray()) {
            throw new FieldRefused("own_log_dirs", node, "an array");
        }
        List<OwnLogDir> found = new ArrayList<>();
        for (JsonNode entry : node) {
            long hard = integer(entry, "hard_available_bytes", -1, Long.MAX_VALUE - 1);
            found.add(new OwnLogDir(text(entry, "log_dir"), integer(entry, "soft_available_bytes", hard + 1, Long.MAX_VALUE), hard));
        }
        return List.copyOf(found);
    }

    private static double factor(JsonNode root, State state) throws FieldRefused {
        JsonNode node = root.path("factor");
        double factor = node.isNumber() ? node.doubleValue() : Double.NaN;
        String allowed = switch (state) {
            case OPEN -> factor == 1.0 ? null : "1 in state OPEN";
            case PAUSE -> factor == 0.0 ? null : "0 in state PAUSE";
            case THROTTLE -> factor > 0.0 && factor < 1.0 ? null : "above 0 and below 1 in state THROTTLE";
        };
        if (allowed != null) {
            throw new FieldRefused("factor", node, allowed);
        }
        return factor;
    }

    /** @param worst the decision's factor: none is less, or readers that know no scope would hold too little */
    private static TopicFactors topics(JsonNode root, double worst) throws FieldRefused {
        JsonNode topics = root.path("topics");
        if (!topics.isObject()) {
            throw new FieldRefused("topics", topics, "an object with the factor of each topic, because scope is topics");
        }
        Map<String, Double> named = new HashMap<>();
        for (Map.Entry<String, JsonNode> topic : topics.properties()) {
            if (!TOPIC.matcher(topic.getKey()).matches()) {
                throw new FieldRefused("topics", TextNode.valueOf(topic.getKey()), "names of topics");
            }
            named.put(topic.getKey(), factorOf("topics." + topic.getKey(), topic.getValue(), worst));
        }
        JsonNode others = root.path("other_topics_factor");
        return new TopicFactors(named, others.isMissingNode() ? 1 : factorOf("other_topics_factor", others, worst));
    }

    private static double factorOf(String field, JsonNode node, double worst) throws FieldRefused {
        double factor = node.isNumber() ? node.doubleValue() : Double.NaN;
        if (!(factor >= worst && factor <= 1)) {
            throw new FieldRefused(field, node, "a number from " + worst + ", the decision's factor, to 1");
        }
        return factor;
    }

    private static long integer(JsonNode root, String field, long min, long max) throws FieldRefused {
        JsonNode node = root.path(field);
        if (!node.isIntegralNumber() || !node.canConvertToLong() || node.longValue() < min || node.longValue() > max) {
            throw new FieldRefused(field, node, "an integer from " + min + " to " + max);
        }
        return node.longValue();
    }

    private static String text(JsonNode root, String field) throws FieldRefused {
        JsonNode node = root.path(field);
        if (!node.isTextual() || node.textValue().isBlank() || node.textValue().length() > MAX_TEXT) {
            throw new FieldRefused(field, node, "a text of 1 to " + MAX_TEXT + " characters");
        }
        return node.textValue();
    }

    private static <E> E choice(JsonNode root, String field, E[] values, java.util.function.Function<E, String> spelling)
            throws FieldRefused {
        JsonNode node = root.path(field);
        for (E value : values) {
            if (node.isTextual() && spelling.apply(value).equals(node.textValue())) {
                return value;
            }
        }
        throw new FieldRefused(field, node, "one of " + Arrays.stream(values).map(spelling).collect(Collectors.joining(", ")));
    }

    private static void optional(JsonNode root, String field, boolean wellTyped, String allowed) throws FieldRefused {
        JsonNode node = root.path(field);
        if (!node.isMissingNode() && !node.isNull() && !wellTyped) {
            throw new FieldRefused(field, node, allowed);
        }
    }

    private static final class FieldRefused extends Exception {
        private static final long serialVersionUID = 1L;
        private static final int SHOWN = 80;

        FieldRefused(String field, JsonNode node, String allowed) {
            super(field + " is " + shown(node) + ", allowed is " + allowed, null, false, false);
        }

        private static String shown(JsonNode node) {
            if (node.isMissingNode()) {
                return "missing";
            }
            String text = node.toString();
            return text.length() <= SHOWN ? text : text.substring(0, SHOWN) + "…";
        }
    }
}
