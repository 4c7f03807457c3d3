package org.kquota.config;

import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.LambdaValidator;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigDef.ValidString;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.kquota.decision.Mode;
import org.kquota.decision.LostAction;
import org.kquota.govern.GovernorSettings;
import org.kquota.group.Group;
import org.kquota.group.GroupProperties;
import org.kquota.group.Groups;
import org.kquota.quota.ByteRate;
import org.kquota.quota.ExemptPrincipals;
import org.kquota.quota.QuotaProperties;
import org.kquota.quota.StaticQuotas;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;

/** Every broker property of the plug-in, with its default, what is allowed and what it means. */
public final class KquotaConfig extends AbstractConfig {
    public static final String MODE = "kquota.mode";
    public static final String DECISION_FILE = "kquota.decision.file";
    public static final String APPLIED_FILE = "kquota.applied.file";
    public static final String DECISION_LOST_ACTION = "kquota.decision.lost.action";
    public static final String EXEMPT_PRINCIPALS = ExemptPrincipals.PROPERTY;
    public static final String AGENT_PRINCIPALS = "kquota.agent.principals";
    public static final String AGENT_PRODUCE_QUOTA = "kquota.agent.produce.quota";
    public static final String FENCE_AUTHORIZER_CLASS = "kquota.fence.authorizer.class";
    public static final String TOPICS_FILE = "kquota.topics.file";
    public static final String OWN_TOPICS = "kquota.own.topics";
    public static final String TAG_SETS_MAX = "kquota.tag.sets.max";
    public static final String MUTE_MAX_MS = "kquota.produce.mute.max.ms";
    public static final String ARRIVAL_MIN_BYTES = "kquota.produce.arrival.min.bytes";
    public static final String BASELINE_SECONDS = "kquota.produce.baseline.seconds";
    public static final String BASELINE_MIN_BYTES = "kquota.produce.baseline.min.bytes.per.second";
    public static final String FACTOR_MIN_RATIO = "kquota.produce.factor.min.ratio";
    public static final String NEWCOMERS_MIN_RATIO = "kquota.produce.newcomers.min.ratio";

    /** The classes that client.quota.callback.class and authorizer.class.name name. */
    public static final String CALLBACK = "org.kquota.KquotaCallback";
    public static final String AUTHORIZER = "org.kquota.KquotaAuthorizer";

    /** Those that are read when the broker starts only; all others change while it runs. */
    public static final Set<String> READ_AT_START = Set.of(DECISION_FILE, APPLIED_FILE, TOPICS_FILE, FENCE_AUTHORIZER_CLASS, OWN_TOPICS, TAG_SETS_MAX);

    private static final String STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
    /** The word for a cluster without an authorizer: an absence never opens one. */
    static final String NO_AUTHORIZER = "none";
    private static final String JMX_REPORTER = "org.apache.kafka.common.metrics.JmxReporter";
    private static final String CALLBACK_CLASS = "client.quota.callback.class";
    private static final String METADATA_LOG_DIR = "metadata.log.dir";
    private static final String LOG_DIRS = "log.dirs";
    private static final String LOG_DIR = "log.dir";

    private static final String RATE = "a rate from 1K to 1000T, such as 2M (10^6) or 2Mi (2^20)";
    private static final String PRINCIPALS_OR_EMPTY = "Type:name, separated by semicolons, as in " + EXEMPT_PRINCIPALS + ", or empty";

    /** The plug-in's own properties; the table in callback/README.md is made from it. */
    public static final ConfigDef DEFINITION = QuotaProperties.define(new ConfigDef())
        .define(MODE, Type.STRING, Mode.OBSERVE.text(), ValidString.in(Mode.OBSERVE.text(), Mode.ENFORCE.text()), Importance.HIGH,
            "observe: the plug-in computes and reports everything, and holds no producer. enforce: it holds producers if the mode in the "
                + "decision file is enforce, too.")
        .define(DECISION_FILE, Type.STRING, "/run/kquota/decision.json", new AbsolutePath(), Importance.HIGH,
            "The decision that the local agent writes. Accepted only as a regular file owned by root or by its directory's owner, "
                + "where neither group nor others can write file or directory.")
        .define(APPLIED_FILE, Type.STRING, "/run/kquota-broker/applied.json", new AbsolutePath(), Importance.MEDIUM,
            "The file of the plug-in's report to the local agent. Its directory must exist and be writable by the broker's user.")
        .define(DECISION_LOST_ACTION, Type.STRING, "pause", ValidString.in("pause", "open", "bounded"), Importance.HIGH,
            "The state that holds while the decision is lost: missing, refused, unreadable, for another cluster, broker or boot, or with its lease run out. "
                + "bounded: the last decision, as far as this broker's own disks, which the plug-in looks at itself, allow it, for at most ten minutes; "
                + "then, and without a last decision, a pause.")
        .define(EXEMPT_PRINCIPALS, Type.STRING, ConfigDef.NO_DEFAULT_VALUE, new Principals(), Importance.HIGH,
            "Principals that are never held, as Type:name, separated by semicolons, for example User:CN=agent,O=x;User:admin. They have "
                + "unlimited fetch and request quotas, and, but for agents, produce quotas above any other quota. The agent's principal and the brokers' own "
                + "belong here. "
                + "User:ANONYMOUS is refused. In User:CN=agent-*,O=x, the * stands for any characters within the value of this attribute, without those that "
                + "separate or escape in a distinguished name. \\* is a literal *.")
        .define(AGENT_PRINCIPALS, Type.STRING, "", QuotaProperties.checked(KquotaConfig::requireAgents, PRINCIPALS_OR_EMPTY), Importance.MEDIUM,
            "Those of the exempt principals that are agents', in the same form, so that who has stolen the key of one cannot fill disks by it: each may produce "
                + AGENT_PRODUCE_QUOTA + " on this broker. Not the brokers' own, nor administrators. Empty: no exempt principal has a produce quota.")
        .define(AGENT_PRODUCE_QUOTA, Type.STRING, "1Mi", QuotaProperties.checked(ByteRate::parse, RATE), Importance.LOW,
            "Produce quota of each principal in " + AGENT_PRINCIPALS + " on this broker, in bytes per second, in every state. Beyond it the broker delays, and the "
                + "fence, where kquota.mode is enforce, refuses on all connections until the bytes are paid for.")
        .define(FENCE_AUTHORIZER_CLASS, Type.STRING, STANDARD_AUTHORIZER,
            // That there is such an authorizer is checked where it is made: a broker without the fence need not have it.
            LambdaValidator.with(KquotaConfig::requireAuthorizer, () -> "name of a class, or " + NO_AUTHORIZER), Importance.MEDIUM,
            "The authorizer that org.kquota.KquotaAuthorizer wraps and leaves all authorization to, configured by its own properties as ever. "
                + "none: every client may do everything, as on a broker without an authorizer. An empty value is refused. "
                + "Acts only where authorizer.class.name is org.kquota.KquotaAuthorizer.")
        .define(TOPICS_FILE, Type.STRING, "/etc/kquota/topics.json", new AbsolutePath(), Importance.MEDIUM,
            "Thresholds of bytes in per second, for this broker and for single topics, as kquota topics writes them; read again each second. There need not be "
                + "such a file. Accepted only as a regular file owned by root or by its directory's owner, where neither group nor others can write file or "
                + "directory. Acts only where authorizer.class.name is org.kquota.KquotaAuthorizer and kquota.mode is enforce.")
        .define(OWN_TOPICS, Type.LIST, List.of("__kquota_volume_usage", "__kquota_history", "__kquota_orders"),
            LambdaValidator.with((name, value) -> { }, () -> "names of topics, separated by commas"), Importance.LOW,
            "The topics that agents and operators of kquota write: as Kafka's internal topics, they take no share of the thresholds of topics and are "
                + "not refused by them. To be set where the agents' topics have other names.")
        .define(TAG_SETS_MAX, Type.INT, 2000, Range.between(10, 1_000_000), Importance.LOW,
            "How many metric tag sets without a configured quota are kept apart, for each quota type. Clients beyond it share one tag set.")
        .define(MUTE_MAX_MS, Type.LONG, 10_000L, Range.between(100, 600_000), Importance.MEDIUM,
            "Longest mute of a connection that the limits without the fence aim for in PAUSE, and twice as long as in THROTTLE, in milliseconds: longer means that less leaks in a pause, that THROTTLE "
                + "comes to smaller targets, and that producers resume later.")
        .define(ARRIVAL_MIN_BYTES, Type.LONG, 1_048_576L, Range.between(1_024, 1_073_741_824), Importance.LOW,
            "Bytes that clients which share a limit may bring in each of the longest mutes, whatever the target: all clients in PAUSE without the fence, newcomers in "
                + "THROTTLE without it. Smaller leaks less, and mutes for longer where more arrives at once.")
        .define(BASELINE_SECONDS, Type.LONG, 10L, Range.between(1, 3_600), Importance.LOW,
            "Time constant of the moving average that is a client's baseline, in seconds. Baselines are frozen when OPEN is left.")
        .define(BASELINE_MIN_BYTES, Type.LONG, 1_048_576L, Range.between(0, Long.MAX_VALUE), Importance.LOW,
            "Smallest total rate before THROTTLE that the plug-in assumes, in bytes per second. Newcomers get their share of it on a broker "
                + "without another figure, for example after its restart.")
        .define(FACTOR_MIN_RATIO, Type.DOUBLE, 0.0, new Ratio(0.5), Importance.LOW,
            "The floor of the throttle factor: a smaller one that is decided is raised to it, so that producers do not starve. Disks then reach their hard limit, and "
                + "producers a PAUSE, sooner. 0: none.")
        .define(NEWCOMERS_MIN_RATIO, Type.DOUBLE, 0.05, new Ratio(1.0), Importance.LOW,
            "Smallest share of the throttled total that clients without a baseline have together in THROTTLE.");

    /** The broker's own properties that the plug-in reads, with Kafka's defaults. */
    private static final ConfigDef BROKER = new ConfigDef()
        .define("quota.window.num", Type.INT, 11, Range.atLeast(1), Importance.LOW, "")
        .define("quota.window.size.seconds", Type.INT, 1, Range.atLeast(1), Importance.LOW, "")
        .define("node.id", Type.INT, -1, Importance.LOW, "")
        .define("broker.id", Type.INT, -1, Importance.LOW, "")
        .define("metric.reporters", Type.LIST, List.of(JMX_REPORTER), Importance.LOW, "")
        .define("remote.log.storage.system.enable", Type.BOOLEAN, false, Importance.LOW, "")
        .define(METADATA_LOG_DIR, Type.STRING, "", Importance.LOW, "")
        .define(LOG_DIRS, Type.LIST, List.of(), Importance.LOW, "")
        .define(LOG_DIR, Type.LIST, List.of(), Importance.LOW, "")
        .define("process.roles", Type.LIST, List.of("broker"), Importance.LOW, "")
        .define(CALLBACK_CLASS, Type.CLASS, null, Importance.LOW, "");

    private final AbstractConfig broker;
    private final Groups groups;
    private final Set<String> names;

    /**
     * @param properties the broker's properties
     * @throws ConfigException if a property of the plug-in is missing or not allowed; names key, value and what is allowed
     */
    public KquotaConfig(Map<String, ?> properties) {
        super(DEFINITION, properties, Map.of(), false);
        broker = new AbstractConfig(BROKER, properties, Map.of(), false);
        names = names(getList(QuotaProperties.GROUPS));
        groups = GroupProperties.groups(getList(QuotaProperties.GROUPS), properties, exemptPrincipals());
        for (String name : new TreeSet<>(properties.keySet())) {
            if (name.startsWith(LiveProperties.PREFIX) && !names().contains(name)) {
                throw unknown(name, properties.get(name), getList(QuotaProperties.GROUPS));
            }
        }
        refuseOverridesInGroups(ClientQuotaType.PRODUCE, QuotaProperties.PRODUCE_OVERRIDES);
        refuseOverridesInGroups(ClientQuotaType.FETCH, QuotaProperties.FETCH_OVERRIDES);
        if (nodeId() < 0 && isBroker()) {
            throw new ConfigException("node.id", nodeId(), "allowed is an id of 0 or more; the decision file names the broker by it");
        }
    }

    /** All of our properties, those of the groups that are named here included. */
    Set<String> names() {
        return names;
    }

    /** Why a property that begins as ours do, and is none where there are these groups, is refused: a misspelt quota would be none. */
    static ConfigException unknown(String name, Object value, List<String> groups) {
        return new ConfigException(name, value, "there is no such property; allowed are " + String.join(", ", new TreeSet<>(DEFINITION.names())) + ", and "
            + GroupProperties.prefix("NAME") + GroupProperties.KEYS + " of the groups in " + QuotaProperties.GROUPS + ", which are "
            + (groups.isEmpty() ? "none" : String.join(", ", groups)));
    }

    public Mode mode() {
        return Mode.of(getString(MODE));
    }

    /** All of our properties where there are these groups. */
    static Set<String> names(Iterable<String> groups) {
        Set<String> names = new HashSet<>(DEFINITION.names());
        groups.forEach(group -> names.addAll(GroupProperties.definition(group).names()));
        return names;
    }

    /**
     * The mode in a changed set of broker properties.
     *
     * @throws ConfigException if it is not allowed
     */
    public static Mode modeOf(Map<String, ?> properties) {
        Object value = properties.get(MODE);
        Map<String, Object> only = value == null ? Map.of() : Map.of(MODE, value);
        ConfigDef.ConfigKey key = DEFINITION.configKeys().get(MODE);
        return Mode.of((String) new ConfigDef().define(key).parse(only).get(MODE));
    }

    public Path decisionFile() {
        return Path.of(getString(DECISION_FILE));
    }

    public Path appliedFile() {
        return Path.of(getString(APPLIED_FILE));
    }

    public Path topicsFile() {
        return Path.of(getString(TOPICS_FILE));
    }

    /** The topics of kquota itself. */
    public Set<String> ownTopics() {
        return Set.copyOf(getList(OWN_TOPICS));
    }

    /** The action while the decision is lost. */
    public LostAction lostAction() {
        return LostAction.valueOf(getString(DECISION_LOST_ACTION).toUpperCase(Locale.ROOT));
    }

    /** The smallest factor of a THROTTLE. */
    public double factorFloor() {
        return getDouble(FACTOR_MIN_RATIO);
    }

    /** The exempt principals, with those that are agents'. */
    public ExemptPrincipals exemptPrincipals() {
        return ExemptPrincipals.parse(getString(EXEMPT_PRINCIPALS)).withAgents(getString(AGENT_PRINCIPALS), ByteRate.parse(getString(AGENT_PRODUCE_QUOTA)));
    }

    private static void requireAgents(String text) {
        if (!text.isBlank()) {
            ExemptPrincipals.parse(text);
        }
    }

    /** The quotas of a type for client ids; none for types that have no static ones. */
    public StaticQuotas staticQuotas(ClientQuotaType type) {
        return switch (type) {
            case PRODUCE -> QuotaProperties.staticQuotas(getString(QuotaProperties.PRODUCE_DEFAULT), getString(QuotaProperties.PRODUCE_OVERRIDES));
            case FETCH -> QuotaProperties.staticQuotas(getString(QuotaProperties.FETCH_DEFAULT), getString(QuotaProperties.FETCH_OVERRIDES));
            default -> StaticQuotas.NONE;
        };
    }

    /** The quota groups. */
    public Groups groups() {
        return groups;
    }

    private void refuseOverridesInGroups(ClientQuotaType type, String key) {
        for (String clientId : staticQuotas(type).overrides().keySet()) {
            Group group = groups.ofClientId(clientId);
            if (group != null && group.limits(type)) {
                throw new ConfigException(key, getString(key), "client id '" + clientId + "' is in group " + group.name()
                    + ", which has such a limit too; allowed is one of them");
            }
        }
    }

    public int maxTagSets() {
        return getInt(TAG_SETS_MAX);
    }

    /** The id of this node, or a negative number on a node that names none. */
    public int nodeId() {
        int nodeId = broker.getInt("node.id");
        return nodeId >= 0 ? nodeId : broker.getInt("broker.id");
    }

    /** The directories that the node was formatted with, that of the metadata first; none where their names are left to Kafka. */
    public List<String> formattedDirs() {
        return Stream.concat(Stream.of(broker.getString(METADATA_LOG_DIR).strip()), logDirs().stream()).filter(dir -> !dir.isEmpty()).toList();
    }

    /** The directories of the data; none where their names are left to Kafka. */
    public List<String> logDirs() {
        return broker.getList(LOG_DIRS).isEmpty() ? broker.getList(LOG_DIR) : broker.getList(LOG_DIRS);
    }

    /** Whether this node serves producers; a controller-only node does not. */
    public boolean isBroker() {
        return broker.getList("process.roles").contains("broker") || broker.getList("process.roles").isEmpty();
    }

    /** Whether the broker shows its rates over JMX, where the governor reads them. */
    public boolean hasJmxReporter() {
        return broker.getList("metric.reporters").contains(JMX_REPORTER);
    }

    /** Whether this broker moves segments to remote storage. */
    public boolean isTiered() {
        return broker.getBoolean("remote.log.storage.system.enable");
    }

    /** The class of the authorizer that the fence wraps; none where every client may do everything. */
    public Optional<String> fencedAuthorizer() {
        return Optional.of(getString(FENCE_AUTHORIZER_CLASS).strip()).filter(name -> !name.equals(NO_AUTHORIZER));
    }

    private static void requireAuthorizer(String name, Object value) {
        if (value == null || ((String) value).isBlank()) {
            throw new ConfigException(name, value, "allowed is the name of the cluster's authorizer, or " + NO_AUTHORIZER
                + " to let every client do everything");
        }
    }

    /**
     * Checks that the quota callback is there too: it throttles, and it holds producers if the fence does not.
     *
     * @param required the class of the callback
     * @throws ConfigException if it is not
     */
    public void requireCallback(Class<?> required) {
        Class<?> callback = broker.getClass(CALLBACK_CLASS);
        if (callback == null || !required.isAssignableFrom(callback)) {
            throw new ConfigException(CALLBACK_CLASS, callback == null ? null : callback.getName(), "allowed is "
                + CALLBACK + " where authorizer.class.name is " + AUTHORIZER);
        }
    }

    public GovernorSettings governor() {
        int windowSeconds = broker.getInt("quota.window.size.seconds");
        return new GovernorSettings(
            (double) windowSeconds * broker.getInt("quota.window.num"),
            getLong(MUTE_MAX_MS) / 1e3,
            getLong(ARRIVAL_MIN_BYTES),
            getLong(BASELINE_SECONDS),
            getLong(BASELINE_MIN_BYTES),
            getDouble(NEWCOMERS_MIN_RATIO));
    }

    /** A number from 0 on; a range alone takes what is no number, which is neither below nor above it. */
    private static final class Ratio implements ConfigDef.Validator {
        private final Range range;

        Ratio(double max) {
            this.range = Range.between(0.0, max);
        }

        @Override
        public void ensureValid(String name, Object value) {
            if (value instanceof Double number && number.isNaN()) {
                throw new ConfigException(name, value, "allowed is a number in " + range);
            }
            range.ensureValid(name, value);
        }

        @Override
        public String toString() {
            return range.toString();
        }
    }

    private static final class AbsolutePath implements ConfigDef.Validator {
        @Override
        public void ensureValid(String name, Object value) {
            try {
                Path path = Path.of((String) value);
                if (path.isAbsolute() && path.getParent() != null) {
                    return;
                }
            } catch (InvalidPathException e) {
                // The exception below names it.
            }
            throw new ConfigException(name, value, "allowed is the absolute path of a file");
        }

        @Override
        public String toString() {
            return "absolute path of a file";
        }
    }

    private static final class Principals implements ConfigDef.Validator {
        @Override
        public void ensureValid(String name, Object value) {
            try {
                ExemptPrincipals.parse((String) value);
            } catch (IllegalArgumentException e) {
                throw new ConfigException(name, value, e.getMessage());
            }
        }

        @Override
        public String toString() {
            return "at least one Type:name, separated by semicolons, without User:ANONYMOUS; at most 32 with a *, in an attribute value of a distinguished name";
        }
    }
}
