package org.kquota.applied;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.annotation.JsonNaming;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.kquota.decision.Mode;
import org.kquota.decision.Scope;
import org.kquota.decision.State;

import java.io.IOException;
import java.util.List;

/**
 * The content of the applied-state file: what this broker applies, for the local agent. schemas/applied.schema.json
 * is its contract.
 *
 * @param schemaVersion          version of this format
 * @param pluginVersion          version of the plug-in
 * @param decisionSchemaVersions schema versions of the decision file that the plug-in was written for
 * @param bootId                 boot in which it was written
 * @param writtenUptimeMs        when, milliseconds since boot
 * @param pid                    the broker's process
 * @param startedUptimeMs        when the plug-in started, milliseconds since boot
 * @param clusterId              the broker's cluster, or null while it does not know it
 * @param brokerId               node id
 * @param sequence               sequence of the decision in force, or null while the decision is lost
 * @param lost                   why the decision is lost, one sentence, or null
 * @param mode                   the mode in force
 * @param brokerMode             the broker property kquota.mode
 * @param state                  OPEN, THROTTLE or PAUSE, as decided or for lack of a decision
 * @param factor                 throttle factor in [0, 1]
 * @param mechanism              the mechanism that holds producers now: none, the governor or the fence
 * @param starving               clients whose turns are further apart than producers keep a record, or null in a file of a version without it
 * @param scope                  the scope in force, or null in a file of a version without it
 * @param clusterTopics  how many topics the cluster has, or null while the broker does not know them
 * @param kept                   why the decision holds on although its lease is over, one sentence, or null
 * @param leaders                whose leaders of partitions it divides by, or null where it divides nothing by them or in a file of a version without it
 * @param exempt                 exempt principals seen in the last ten minutes
 * @param offlineLogDirs         log dirs that the broker has taken offline
 * @param logDirs                the log dirs that the broker runs with, or null in a file of a version without them
 * @param errors                 all kinds of errors, counted since the plug-in started
 * @param governor               the governor's figures
 * @param fence                  the fence's figures, or null in a file of a version that had none
 * @param clients                the clients of the broker, or null where they could not be read or were not reported yet
 */
@JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
public record AppliedState(
        int schemaVersion,
        String pluginVersion,
        List<Integer> decisionSchemaVersions,
        String bootId,
        long writtenUptimeMs,
        long pid,
        long startedUptimeMs,
        String clusterId,
        int brokerId,
        Long sequence,
        String lost,
        Mode mode,
        Mode brokerMode,
        State state,
        double factor,
        Mechanism mechanism,
        @JsonInclude(JsonInclude.Include.NON_NULL) Integer starving,
        @JsonInclude(JsonInclude.Include.NON_NULL) Scope scope,
        @JsonInclude(JsonInclude.Include.NON_NULL) Integer clusterTopics,
        @JsonInclude(JsonInclude.Include.NON_NULL) String kept,
        @JsonInclude(JsonInclude.Include.NON_NULL) Leaders leaders,
        List<Exempt> exempt,
        List<String> offlineLogDirs,
        @JsonInclude(JsonInclude.Include.NON_NULL) List<LogDir> logDirs,
        List<Error> errors,
        GovernorFigures governor,
        @JsonInclude(JsonInclude.Include.NON_NULL) FenceFigures fence,
        @JsonInclude(JsonInclude.Include.NON_NULL) ClientFigures clients) {

    public static final int SCHEMA_VERSION = 1;

    private static final ObjectMapper MAPPER = JsonMapper.builder()
        .enable(SerializationFeature.INDENT_OUTPUT)
        .addMixIn(Mode.class, LowerCase.class)
        .addMixIn(Scope.class, LowerCaseScope.class)
        .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
        .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
        .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
        .build();
    private static final ObjectReader READER = MAPPER.readerFor(AppliedState.class)
        .with(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
        .with(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES);

    /** Refuses a state that contradicts itself, so that it can neither be written nor read. */
    public AppliedState {
        check(schemaVersion >= 1, "schema_version is at least 1");
        check(brokerId >= 0 && writtenUptimeMs >= 0 && startedUptimeMs >= 0 && pid >= 1, "ids and uptimes are not negative");
        check((lost == null) == (sequence != null), "a decision is lost, or there is its sequence");
        check(state == State.OPEN ? factor == 1 : state == State.PAUSE ? factor == 0 : factor > 0 && factor < 1,
            "the factor is 1 in OPEN, 0 in PAUSE and between them in THROTTLE");
        check(lost == null || state != State.THROTTLE, "a lost decision is answered with PAUSE or OPEN");
        check(mode == Mode.OBSERVE || brokerMode == Mode.ENFORCE, "the mode is enforce only if the broker property is enforce");
        check(mechanism == Mechanism.NONE || (mode == Mode.ENFORCE && state != State.OPEN),
            "nothing holds producers in OPEN or in observe mode");
        check(lost == null || kept == null, "a lost decision is not kept");
        check(lost == null || scope != Scope.TOPICS, "a lost decision is about the cluster");
        check(starving == null || starving >= 0, "starving is not negative");
        check(clusterTopics == null || clusterTopics >= 0, "cluster_topics is not negative");
        check(bootId != null && pluginVersion != null && governor != null, "boot_id, plugin_version and governor are there");
        decisionSchemaVersions = List.copyOf(decisionSchemaVersions);
        exempt = List.copyOf(exempt);
        offlineLogDirs = List.copyOf(offlineLogDirs);
        logDirs = logDirs == null ? null : List.copyOf(logDirs);
        errors = List.copyOf(errors);
    }

    private static void check(boolean holds, String rule) {
        if (!holds) {
            throw new IllegalArgumentException("an applied state contradicts itself: " + rule);
        }
    }

    /** The mechanism that holds producers. */
    public enum Mechanism {
        @JsonProperty("none") NONE,
        @JsonProperty("governor") GOVERNOR,
        @JsonProperty("fence") FENCE
    }

    /** The spelling of a mode in files. */
    private enum LowerCase {
        @JsonProperty("observe") OBSERVE,
        @JsonProperty("enforce") ENFORCE
    }

    /** The spelling of a scope in files. */
    private enum LowerCaseScope {
        @JsonProperty("cluster") CLUSTER,
        @JsonProperty("topics") TOPICS
    }

    /** An exempt principal as Type:name, its client ids seen lately, and when it was last seen, milliseconds since boot. */
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    public record Exempt(String principal, List<String> clientIds, long lastSeenUptimeMs) {
        public Exempt {
            check(principal.indexOf(':') > 0, "a principal is Type:name");
            clientIds = List.copyOf(clientIds);
        }
    }

    /** A log dir, absolute, and the device and inode that its path leads to in the broker's mount namespace; null where it could not be read. */
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    public record LogDir(String path, @JsonInclude(JsonInclude.Include.NON_NULL) Long device, @JsonInclude(JsonInclude.Include.NON_NULL) Long inode) {
        public LogDir {
            check(path != null && !path.isEmpty(), "a log dir has a path");
            check((device == null) == (inode == null), "a log dir has both a device and an inode, or neither");
            check(device == null || device >= 0 && inode >= 0, "a device and an inode are not negative");
        }
    }

    /** A kind of error, how often, and its last message or null. */
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    public record Error(String kind, long count, String lastMessage) {
    }

    /** Whose leaders of partitions are in use, and when they were seen, milliseconds since boot; null where there are none. */
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    public record Leaders(String source, @JsonInclude(JsonInclude.Include.NON_NULL) Long seenUptimeMs) {
        public Leaders {
            check(source != null && !source.isEmpty() && (seenUptimeMs == null || seenUptimeMs >= 0), "leaders have a source, and an uptime that is not negative");
        }
    }

    /** The governor's figures; rates in bytes per second. */
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    public record GovernorFigures(int tagSets, double observedByteRate, double baselineByteRate, double poolByteRate,
                                  Double poolLimitByteRate, Double poolMuteSeconds) {
    }

    /** Whether produce requests are refused in THROTTLE and PAUSE, and how many were since the broker started. */
    @JsonNaming(PropertyNamingStrategies.SnakeCaseStrategy.class)
    public record FenceFigures(boolean installed, long refusals) {
    }

    /** The file's bytes. */
    public byte[] toJson() throws JsonProcessingException {
        return MAPPER.writeValueAsBytes(this);
    }

    /**
     * The state in these bytes.
     *
     * @throws IOException if they are no applied state
     */
    public static AppliedState fromJson(byte[] json) throws IOException {
        JsonNode tree = MAPPER.readTree(json);
        nullWhereAbsent(tree, "starving", "scope", "cluster_topics", "kept", "leaders", "log_dirs", "fence", "clients");
        nullWhereAbsent(tree.path("leaders"), "seen_uptime_ms");
        tree.path("log_dirs").forEach(dir -> nullWhereAbsent(dir, "device", "inode"));
        tree.path("clients").path("top").forEach(client -> nullWhereAbsent(client, "fetched_bytes", "factor", "topics"));
        tree.path("clients").path("groups").forEach(group -> nullWhereAbsent(group, "fetched_bytes"));
        AppliedState state = READER.readValue(tree);
        if (state == null) {
            throw new IOException("an applied state is a JSON object, not null");
        }
        return state;
    }

    /** For keys that came in later versions: all others have to be there. */
    private static void nullWhereAbsent(JsonNode node, String... keys) {
        for (String key : keys) {
            if (node instanceof ObjectNode object && !object.has(key)) {
                object.putNull(key);
            }
        }
    }
}
