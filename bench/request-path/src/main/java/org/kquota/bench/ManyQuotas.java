package org.kquota.bench;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.authorizer.ClusterMetadataAuthorizer;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A broker's own quota and authorizer classes with very many quotas: 10,000 clients, three of four in one of 100 groups, half of these with a
 * cluster-wide total; 1,000 topics of eight partitions, each with an ACL, 100 of them with a threshold of their own.
 */
public final class ManyQuotas implements AutoCloseable {
    /** The callback or authorizer that is called. */
    public enum Kind {
        /** Stock: a quota for each client, and the authorizer with its ACLs. */
        STOCK(false, false),
        /** The plug-in with its quotas, groups, shares and thresholds; no client or topic is over a limit. */
        KQUOTA(true, false),
        /** The same while 100 topics are over their thresholds, which the requests measured are not for. */
        KQUOTA_TOPICS_OVER(true, true);

        private final boolean pluggedIn;
        private final boolean topicsOver;

        Kind(boolean pluggedIn, boolean topicsOver) {
            this.pluggedIn = pluggedIn;
            this.topicsOver = topicsOver;
        }
    }

    static final int CLIENTS = 10_000;
    static final int GROUPS = 100;
    static final int TOPICS = 1_000;
    private static final int PARTITIONS = 8;
    private static final int BROKERS = 4;
    private static final int TOPICS_WITH_THRESHOLD = 100;
    private static final int MARKED_BYTES = 50_000_000;
    private static final int WINDOWS = 11;
    private static final double UNREACHED_BYTES_PER_SECOND = 1e15;
    private static final short PRODUCE = 0;

    private final Metrics metrics =
        new Metrics(new MetricConfig(), List.of(new JmxReporter()), Time.SYSTEM, new KafkaMetricsContext("kafka.server"));
    private final BrokerTopicStats stats = new BrokerTopicStats();
    private final ClientQuotaCallback callback;
    private final ClientQuotaManager quotas;
    private final ClusterMetadataAuthorizer authorizer;
    private final Session[] sessions = new Session[CLIENTS];
    private final String[] clientIds = new String[CLIENTS];
    private final ProduceRequest[] requests = new ProduceRequest[CLIENTS];
    private final List<List<Action>> writes = new ArrayList<>();

    /** @param directory where decision/decision.json is; thresholds and applied/ are written there */
    ManyQuotas(Kind kind, Path directory) throws ReflectiveOperationException, IOException, InterruptedException {
        Map<String, String> properties = properties(directory);
        if (kind.pluggedIn) {
            writeThresholds(directory, kind.topicsOver);
            callback = (ClientQuotaCallback) Class.forName("org.kquota.KquotaCallback").getDeclaredConstructor().newInstance();
            callback.configure(properties);
            callback.updateClusterMetadata(cluster());
            authorizer = (ClusterMetadataAuthorizer) Class.forName("org.kquota.KquotaAuthorizer").getDeclaredConstructor().newInstance();
        } else {
            callback = null;
            authorizer = new StandardAuthorizer();
        }
        quotas = new ClientQuotaManager(new ClientQuotaManagerConfig(WINDOWS, 1), metrics, QuotaType.PRODUCE, Time.SYSTEM, "bench",
            Optional.ofNullable(callback).map(it -> Plugin.wrapInstance(it, metrics, "client.quota.callback.class", "role", "broker")));
        quotas.updateQuota(Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY), Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID),
            Optional.of(new Quota(UNREACHED_BYTES_PER_SECOND, true)));
        authorizer.configure(properties);
        // As a broker does it: an authorizer has metrics of its own.
        Plugin.wrapInstance(authorizer, metrics, "authorizer.class.name", "role", "broker");
        authorizer.loadSnapshot(acls());
        authorizer.completeInitialLoad();
        for (int topic = 0; topic < TOPICS; topic++) {
            writes.add(List.of(new Action(AclOperation.WRITE, new ResourcePattern(ResourceType.TOPIC, topic(topic), PatternType.LITERAL), 1, true, true)));
        }
        for (int client = 0; client < CLIENTS; client++) {
            KafkaPrincipal principal = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user(client));
            sessions[client] = new Session(principal, InetAddress.getLoopbackAddress());
            clientIds[client] = clientId(client);
            requests[client] = new ProduceRequest(PRODUCE, principal, clientIds[client]);
            meter(client);
        }
        if (kind.topicsOver) {
            awaitRefusals();
        }
    }

    // ---- the clients: of four, one is in its group by its name, one by a prefix, one by a pattern of its client id, and one is in none

    private static String user(int client) {
        return switch (client % 4) {
            case 0 -> "member-" + client;
            case 1 -> "team-" + client % GROUPS + "-" + client;
            default -> "user-" + client;
        };
    }

    private static String clientId(int client) {
        return client % 4 == 2 ? "app" + client % GROUPS + "-" + client : "client-" + client;
    }

    private static String topic(int topic) {
        return "topic-" + topic % GROUPS + "-" + topic;
    }

    private static Map<String, String> properties(Path directory) {
        Map<String, String> properties = new HashMap<>(Map.of(
            "node.id", "1", "process.roles", "broker", "client.quota.callback.class", "org.kquota.KquotaCallback",
            "kquota.mode", "enforce", "kquota.exempt.principals", "User:nobody-here",
            "kquota.decision.file", directory.resolve("decision/decision.json").toString(),
            "kquota.applied.file", directory.resolve("applied/applied.json").toString(),
            "kquota.topics.file", thresholdsFile(directory).toString(),
            "kquota.quota.produce.default", "900G"));
        List<String> overrides = new ArrayList<>();
        List<String> names = new ArrayList<>();
        for (int group = 0; group < GROUPS; group++) {
            overrides.add("client-" + (4 * group + 3) + ":800G");
            names.add("g" + group);
            String prefix = "kquota.quota.group.g" + group + ".";
            StringBuilder principals = new StringBuilder("User:team-" + group + "-*");
            for (int client = group; client < CLIENTS; client += GROUPS) {
                if (client % 4 == 0) {
                    principals.append(";User:").append(user(client));
                }
            }
            properties.put(prefix + "principals", principals.toString());
            properties.put(prefix + "client.ids", "~app" + group + "-[0-9]+");
            if (group < GROUPS / 2) {
                properties.put(prefix + "produce", "700G");
            } else {
                properties.put(prefix + "produce.total", "900G");
                properties.put(prefix + "topics", "topic-" + group + "-.*");
            }
        }
        properties.put("kquota.quota.groups", String.join(",", names));
        properties.put("kquota.quota.produce.overrides", String.join(",", overrides));
        return properties;
    }

    private static Cluster cluster() {
        Node[] nodes = new Node[BROKERS];
        for (int id = 1; id <= BROKERS; id++) {
            nodes[id - 1] = new Node(id, "localhost", 9092 + id);
        }
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int topic = 0; topic < TOPICS; topic++) {
            for (int partition = 0; partition < PARTITIONS; partition++) {
                partitions.add(new PartitionInfo(topic(topic), partition, nodes[partition % BROKERS], new Node[0], new Node[0]));
            }
        }
        return new Cluster("bench", List.of(nodes), partitions, Set.of(), Set.of(), nodes[0]);
    }

    private static Map<Uuid, StandardAcl> acls() {
        Map<Uuid, StandardAcl> acls = new HashMap<>();
        for (int topic = 0; topic < TOPICS; topic++) {
            acls.put(Uuid.randomUuid(), new StandardAcl(ResourceType.TOPIC, topic(topic), PatternType.LITERAL, "User:*", "*", AclOperation.WRITE,
                AclPermissionType.ALLOW));
        }
        return acls;
    }

    // ---- thresholds

    private static Path thresholdsFile(Path directory) {
        return directory.resolve("decision/topics.json");
    }

    private static void writeThresholds(Path directory, boolean over) throws IOException {
        StringBuilder topics = new StringBuilder();
        for (int topic = 0; topic < TOPICS_WITH_THRESHOLD; topic++) {
            topics.append(topics.length() == 0 ? "" : ", ").append('"').append(topic(topic)).append("\": {\"bytes.in.per.sec.threshold\": 1000}");
        }
        Path file = thresholdsFile(directory);
        Files.writeString(file, "{\"schema_version\": 1, \"total.bytes.in.per.sec.threshold\": " + (over ? "1000000" : "1000000000000")
            + ", \"topics\": {" + topics + "}}");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
    }

    /** As if 100 topics had taken in far too much: in the meters that the broker marks when it appends. */
    private void awaitRefusals() throws InterruptedException {
        for (int topic = 0; topic < TOPICS_WITH_THRESHOLD; topic++) {
            stats.topicStats(topic(topic)).bytesInRate().mark(MARKED_BYTES);
            stats.allTopicsStats().bytesInRate().mark(MARKED_BYTES);
        }
        long end = System.nanoTime() + 60_000_000_000L;
        for (int topic = 0; topic < TOPICS_WITH_THRESHOLD; topic++) {
            while (!isRefused(topic)) {
                if (System.nanoTime() > end) {
                    throw new IllegalStateException(topic(topic) + " is not refused");
                }
                Thread.sleep(100);
            }
        }
    }

    private boolean isRefused(int topic) {
        try {
            authorizer.authorize(requests[0], writes.get(topic));
            return false;
        } catch (NotEnoughReplicasException e) {
            return true;
        }
    }

    // ---- the measured calls

    /** The broker's call before the append: asks whether the client may write to a topic, one without a threshold of its own. */
    int authorize(int client) {
        int topic = TOPICS_WITH_THRESHOLD + ThreadLocalRandom.current().nextInt(TOPICS - TOPICS_WITH_THRESHOLD);
        return authorizer.authorize(requests[client], writes.get(topic)).size();
    }

    /** The broker's call after it: meters the bytes, and returns for how long to mute the client. */
    int meter(int client) {
        return quotas.maybeRecordAndGetThrottleTimeMs(sessions[client], clientIds[client], 10_000, System.currentTimeMillis());
    }

    @Override
    public void close() throws IOException {
        quotas.shutdown();
        authorizer.close();
        if (callback != null) {
            callback.close();
        }
        metrics.close();
        stats.close();
    }
}
