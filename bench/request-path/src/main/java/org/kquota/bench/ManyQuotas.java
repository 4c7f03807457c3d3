package org.kquota.bench;

import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.ClusterMetadataAuthorizer;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
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
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A broker's own quota and authorizer classes with very many quotas: 10,000 clients, three of four in one of 100 groups, half of these with a
 * cluster-wide total; 1,000 topics of eight partitions, each with an ACL, 100 of them with a threshold of their own.
 */
public final class ManyQuotas extends ProduceQuotas {
    /** The callback or authorizer that is called. */
    public enum Kind {
        /** Stock: a quota for each client, and the authorizer with its ACLs. */
        STOCK,
        /** The plug-in with its quotas, groups, shares and thresholds; no client or topic is over a limit. */
        KQUOTA,
        /** The same while 100 topics are over their thresholds, which the requests measured are not for. */
        KQUOTA_TOPICS_OVER
    }

    static final int CLIENTS = 10_000;
    private static final int GROUPS = 100;
    private static final int TOPICS = 1_000;
    private static final int PARTITIONS = 8;
    private static final List<Node> BROKERS = IntStream.rangeClosed(1, 4).mapToObj(id -> new Node(id, "localhost", 9092 + id)).toList();
    private static final int TOPICS_WITH_THRESHOLD = 100;
    private static final int MARKED_BYTES = 50_000_000;

    private final BrokerTopicStats stats = new BrokerTopicStats();
    private final ClusterMetadataAuthorizer authorizer;
    private final RequestContext[] requests = new RequestContext[CLIENTS];
    private final List<List<Action>> writes = new ArrayList<>();

    /** @param directory where decision/decision.json is; thresholds and applied/ are written there */
    ManyQuotas(Kind kind, Path directory) throws ReflectiveOperationException, IOException, InterruptedException {
        super(CLIENTS, true, kind == Kind.STOCK ? Map.of() : properties(directory, kind == Kind.KQUOTA_TOPICS_OVER), BROKERS, partitions());
        authorizer = kind == Kind.STOCK ? new StandardAuthorizer()
            : (ClusterMetadataAuthorizer) Class.forName("org.kquota.KquotaAuthorizer").getDeclaredConstructor().newInstance();
        authorizer.configure(properties(directory, kind == Kind.KQUOTA_TOPICS_OVER));
        // As a broker does it: an authorizer has metrics of its own.
        Plugin.wrapInstance(authorizer, metrics, "authorizer.class.name", "role", "broker");
        Map<Uuid, StandardAcl> acls = new HashMap<>();
        for (int topic = 0; topic < TOPICS; topic++) {
            acls.put(Uuid.randomUuid(), new StandardAcl(ResourceType.TOPIC, topic(topic), PatternType.LITERAL, "User:*", "*", AclOperation.WRITE,
                AclPermissionType.ALLOW));
            writes.add(List.of(new Action(AclOperation.WRITE, new ResourcePattern(ResourceType.TOPIC, topic(topic), PatternType.LITERAL), 1, true, true)));
        }
        authorizer.loadSnapshot(acls);
        authorizer.completeInitialLoad();
        for (int client = 0; client < CLIENTS; client++) {
            requests[client] = new RequestContext(new RequestHeader(ApiKeys.PRODUCE, (short) 12, clientId(client), 1), "bench",
                InetAddress.getLoopbackAddress(), new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user(client)), new ListenerName("CLIENTS"),
                SecurityProtocol.SASL_SSL, ClientInformation.EMPTY, false);
        }
        if (kind == Kind.KQUOTA_TOPICS_OVER) {
            awaitRefusals();
        }
    }

    // ---- the clients: of four, one is in its group by its name, one by a prefix, one by a pattern of its client id, and one is in none

    @Override
    String user(int client) {
        return switch (client % 4) {
            case 0 -> "member-" + client;
            case 1 -> "team-" + client % GROUPS + "-" + client;
            default -> super.user(client);
        };
    }

    @Override
    String clientId(int client) {
        return client % 4 == 2 ? "app" + client % GROUPS + "-" + client : super.clientId(client);
    }

    private static String topic(int topic) {
        return "topic-" + topic % GROUPS + "-" + topic;
    }

    private static Map<String, String> properties(Path directory, boolean topicsOver) throws IOException {
        Map<String, String> properties = plugIn(directory);
        properties.put("client.quota.callback.class", "org.kquota.KquotaCallback");
        properties.put("kquota.topics.file", writeThresholds(directory, topicsOver).toString());
        properties.put("kquota.quota.produce.default", "900G");
        List<String> overrides = new ArrayList<>();
        List<String> names = new ArrayList<>();
        for (int group = 0; group < GROUPS; group++) {
            overrides.add("client-" + (4 * group + 3) + ":800G");
            names.add("g" + group);
            String prefix = "kquota.quota.group.g" + group + ".";
            properties.put(prefix + "principals", "User:team-" + group + "-*" + IntStream.iterate(group, client -> client < CLIENTS, client -> client + GROUPS)
                .filter(client -> client % 4 == 0).mapToObj(client -> ";User:member-" + client).collect(Collectors.joining()));
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

    private static List<PartitionInfo> partitions() {
        return IntStream.range(0, TOPICS * PARTITIONS).mapToObj(i -> new PartitionInfo(topic(i / PARTITIONS), i % PARTITIONS,
            BROKERS.get(i % PARTITIONS % BROKERS.size()), new Node[0], new Node[0])).toList();
    }

    private static Path writeThresholds(Path directory, boolean over) throws IOException {
        String topics = IntStream.range(0, TOPICS_WITH_THRESHOLD).mapToObj(topic -> "\"" + topic(topic) + "\": {\"bytes.in.per.sec.threshold\": 1000}")
            .collect(Collectors.joining(", "));
        Path file = Files.writeString(directory.resolve("decision/topics.json"), "{\"schema_version\": 1, \"total.bytes.in.per.sec.threshold\": "
            + (over ? "1000000" : "1000000000000") + ", \"topics\": {" + topics + "}}");
        return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
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

    /** The broker's call before the append: asks whether the client may write to a topic, one without a threshold of its own. */
    int authorize(int client) {
        int topic = TOPICS_WITH_THRESHOLD + ThreadLocalRandom.current().nextInt(TOPICS - TOPICS_WITH_THRESHOLD);
        return authorizer.authorize(requests[client], writes.get(topic)).size();
    }

    @Override
    public void close() throws Exception {
        authorizer.close();
        super.close();
        stats.close();
    }
}
