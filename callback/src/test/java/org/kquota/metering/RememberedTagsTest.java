package org.kquota.metering;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntityType;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.kquota.config.KquotaConfig;
import org.kquota.decision.Decision;
import org.kquota.decision.DecisionInForce;
import org.kquota.decision.EffectiveDecision;
import org.kquota.decision.Mode;
import org.kquota.decision.State;
import org.kquota.quota.TagSet;
import org.kquota.quota.Tags;
import org.kquota.share.LedPartitions;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/** The tags and limits of a request never depend on those of an earlier one. */
class RememberedTagsTest {
    private static final ClientQuotaType PRODUCE = ClientQuotaType.PRODUCE;
    private static final List<String> USERS = List.of("alice", "bob", "carol", "admin", "CN=app1,O=x");
    private static final List<String> CLIENT_IDS = List.of("", "app", "loader", "night-1", "clientA", "__remote_log_metadata_client_1");
    private static final int STEPS = 1_500;
    private static final int ROUNDS = 20_000;

    private record Part(ConfigEntityType entityType, String name) implements ClientQuotaEntity.ConfigEntity {
    }

    private static ClientQuotaEntity entity(Part... parts) {
        return () -> List.of(parts);
    }

    private static Part user(String name) {
        return new Part(name == null ? ConfigEntityType.DEFAULT_USER : ConfigEntityType.USER, name == null ? "" : name);
    }

    private static Part client(String name) {
        return new Part(name == null ? ConfigEntityType.DEFAULT_CLIENT_ID : ConfigEntityType.CLIENT_ID, name == null ? "" : name);
    }

    private static KquotaConfig config() {
        Map<String, Object> properties = new HashMap<>(Map.of(
            "node.id", "1", "process.roles", "broker", KquotaConfig.EXEMPT_PRINCIPALS, "User:admin",
            "kquota.quota.produce.default", "2M", "kquota.quota.produce.overrides", "clientA:4M", "kquota.quota.groups", "ingest,nightly"));
        properties.putAll(Map.of(
            "kquota.quota.group.ingest.principals", "User:bob;~User:CN=app[0-9]+,O=x", "kquota.quota.group.ingest.client.ids", "loader",
            "kquota.quota.group.ingest.produce.total", "5M", "kquota.quota.group.ingest.topics", "orders",
            "kquota.quota.group.nightly.client.ids", "night-*", "kquota.quota.group.nightly.request", "50"));
        return new KquotaConfig(properties);
    }

    private static NodeQuotas quotas(KquotaConfig config, int maxTagSets) {
        return new NodeQuotas(config.exemptPrincipals(), config.groups(), config::staticQuotas, maxTagSets, new DecisionInForce(decided(State.OPEN)));
    }

    private static EffectiveDecision decided(State state) {
        double factor = state == State.OPEN ? 1 : state == State.THROTTLE ? 0.5 : 0;
        return EffectiveDecision.decided(new Decision(1, "c", 1, 1, Mode.ENFORCE, state, factor, false, "b", 1), Mode.ENFORCE,
            System.nanoTime() + 600_000_000_000L, State.PAUSE);
    }

    /** One that remembers, and one that is made to forget before each question. */
    private static final class Both {
        private static final ClientQuotaEntity OF_NOBODY = entity(user("nobody"), client("nowhere"));
        private final KquotaConfig config = config();
        private final NodeQuotas remembering = quotas(config, 8);
        private final NodeQuotas forgetful = quotas(config, 8);
        private final List<String> script = new ArrayList<>();

        Both() {
            // In some versions of Kafka a level that ever had a quota stays in use.
            for (ClientQuotaType type : ClientQuotaType.values()) {
                all("", quotas -> quotas.stock(type).update(OF_NOBODY, 1));
            }
        }

        void all(String what, Consumer<NodeQuotas> task) {
            script.add(what);
            task.accept(remembering);
            task.accept(forgetful);
        }

        void ask(ClientQuotaType type, String user, String clientId) {
            KafkaPrincipal principal = new KafkaPrincipal("User", user);
            script.add(type + " " + user + "/" + clientId + "?");
            forgetful.stock(type).update(OF_NOBODY, 1);
            Map<String, String> expected = forgetful.tags(type, principal, clientId);
            Map<String, String> remembered = remembering.tags(type, principal, clientId);
            assertEquals(expected, remembered, this::story);
            assertEquals(forgetful.limit(type, expected), remembering.limit(type, remembered), this::story);
        }

        private String story() {
            return String.join("; ", script.subList(Math.max(0, script.size() - 60), script.size()));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8})
    @Tag("C2")
    void rememberedTagsEqualThoseOfANewSearch(int seed) {
        Random random = new Random(seed);
        Both both = new Both();
        int seconds = 0;
        for (int step = 0; step < STEPS; step++) {
            ClientQuotaType type = random.nextInt(3) > 0 ? PRODUCE : ClientQuotaType.values()[random.nextInt(4)];
            String user = pick(random, USERS);
            String clientId = pick(random, CLIENT_IDS);
            switch (random.nextInt(12)) {
                case 0 -> {
                    ClientQuotaEntity entity = anEntity(random, user, clientId);
                    double bound = 1_000 * (1 + random.nextInt(5));
                    both.all("set " + type + " " + entity.configEntities(), quotas -> quotas.stock(type).update(entity, bound));
                }
                case 1 -> {
                    ClientQuotaEntity entity = anEntity(random, user, clientId);
                    both.all("remove " + type + " " + entity.configEntities(), quotas -> quotas.stock(type).remove(entity));
                }
                case 2 -> {
                    State state = State.values()[random.nextInt(3)];
                    both.all(state.toString(), quotas -> quotas.decision().publish(decided(state)));
                }
                case 3 -> {
                    String tagUser = random.nextBoolean() ? "" : random.nextBoolean() ? "<group>ingest" : user;
                    String tagClientId = random.nextBoolean() ? "" : clientId;
                    int flags = random.nextInt(8);
                    both.all("flags " + flags + " of " + tagUser + "/" + tagClientId, quotas -> flag(quotas, tagUser, tagClientId, flags));
                }
                case 4 -> {
                    LedPartitions partitions = partitions(random.nextInt(4));
                    both.all("partitions", quotas -> both.config.groups().update(partitions));
                }
                case 5 -> {
                    seconds += random.nextInt(3_000);
                    int now = seconds;
                    both.all("at " + now, quotas -> {
                        quotas.nowSeconds(now);
                        quotas.forgetUnused();
                    });
                }
                default -> both.ask(type, user, clientId);
            }
        }
    }

    private static void flag(NodeQuotas quotas, String user, String clientId, int flags) {
        TagSet tagSet = quotas.tagSets(PRODUCE).find(user, clientId);
        if (tagSet != null) {
            tagSet.hasBaseline((flags & 1) != 0);
            tagSet.limit(5_000);
        }
    }

    private static <T> T pick(Random random, List<T> from) {
        return from.get(random.nextInt(from.size()));
    }

    private static ClientQuotaEntity anEntity(Random random, String userName, String clientId) {
        Part user = user(random.nextInt(3) == 0 ? null : userName);
        Part client = client(random.nextInt(3) == 0 || clientId.isEmpty() ? null : clientId);
        return switch (random.nextInt(3)) {
            case 0 -> entity(user);
            case 1 -> entity(client);
            default -> entity(user, client);
        };
    }

    private static LedPartitions partitions(int led) {
        Node here = new Node(1, "a", 1);
        Node there = new Node(2, "b", 1);
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int partition = 0; partition < 4; partition++) {
            partitions.add(new PartitionInfo("orders", partition, partition < led ? here : there, new Node[0], new Node[0]));
        }
        return LedPartitions.of(new Cluster("c", List.of(here, there), partitions, Set.of(), Set.of()), 1);
    }

    /** A change of a quota counts from the next request on, even while other threads ask, and so remember. */
    @Test
    @Tag("C2")
    void aChangeCountsFromTheNextRequestOnWhileOthersAsk() throws InterruptedException {
        NodeQuotas quotas = quotas(config(), 2_000);
        KafkaPrincipal alice = new KafkaPrincipal("User", "alice");
        AtomicBoolean over = new AtomicBoolean();
        List<Thread> others = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            Thread other = new Thread(() -> {
                while (!over.get()) {
                    quotas.tags(PRODUCE, alice, "clientB");
                }
            });
            other.start();
            others.add(other);
        }
        try {
            ClientQuotaEntity ofAlice = entity(user("alice"), client("clientB"));
            ClientQuotaEntity ofOthers = entity(client("clientB"));
            quotas.stock(PRODUCE).update(ofOthers, 7);
            for (int round = 0; round < ROUNDS; round++) {
                quotas.stock(PRODUCE).update(ofAlice, 5);
                assertEquals(Tags.of("alice", "clientB"), quotas.tags(PRODUCE, alice, "clientB"));
                assertEquals(Tags.of("alice", "clientB"), quotas.tags(PRODUCE, alice, "clientB"));
                quotas.stock(PRODUCE).remove(ofAlice);
                assertEquals(Tags.of("", "clientB"), quotas.tags(PRODUCE, alice, "clientB"));
                assertEquals(Tags.of("", "clientB"), quotas.tags(PRODUCE, alice, "clientB"));
            }
        } finally {
            over.set(true);
            for (Thread other : others) {
                other.join();
            }
        }
    }
}
