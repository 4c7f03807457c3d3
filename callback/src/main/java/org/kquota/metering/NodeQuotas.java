package org.kquota.metering;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.kquota.admission.Admission;
import org.kquota.decision.DecisionInForce;
import org.kquota.decision.State;
import org.kquota.group.Group;
import org.kquota.group.Groups;
import org.kquota.quota.ExemptPrincipals;
import org.kquota.quota.ExemptSeen;
import org.kquota.quota.KafkaNames;
import org.kquota.quota.Quotas;
import org.kquota.quota.StaticQuotas;
import org.kquota.quota.StockQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSetMemo;
import org.kquota.quota.TagSets;
import org.kquota.quota.Tags;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * Answers request threads: under which tags a client is metered, and the limit of tags. It reads volatile
 * fields and concurrent maps only; nothing here waits, and nothing does I/O.
 */
public final class NodeQuotas {
    private static final int UNUSED_SECONDS = 3600;
    private static final int SEEN_SECONDS = 600;
    /** How the client ids of tiered storage's own clients begin. */
    private static final String METADATA_WRITER = "__remote_log_metadata_client_";

    /**
     * The configuration in broker properties, and its results: the exempt principals, the members of groups, the quotas and the memo of each
     * type, by their ordinals. A request uses one of these from its beginning to its end.
     */
    private record InForce(PrincipalResolver principals, Groups groups, ConfiguredQuotas[] quotas, TagSetMemo[] memos, ExemptSeen exemptSeen,
                           double agentQuota) {
        Group group(PrincipalResolver.Resolved principal, String clientId) {
            return principal.group() != null ? principal.group() : groups.ofClientId(clientId);
        }
    }

    private final Map<ClientQuotaType, StockQuotas> stock = new EnumMap<>(ClientQuotaType.class);
    private final Map<ClientQuotaType, TagSets> tagSets = new EnumMap<>(ClientQuotaType.class);
    private volatile InForce inForce;
    private final TagSet paused = new TagSet(Tags.PAUSED);
    private final TagSet newcomers = new TagSet(Tags.NEWCOMERS);
    private final DecisionInForce decision;
    private final Admission admission = new Admission();
    private volatile int nowSeconds;
    private volatile String metadataWriterNotExempt;

    /** @param fixed the static quotas of each type */
    public NodeQuotas(ExemptPrincipals exempt, Groups groups, Function<ClientQuotaType, StaticQuotas> fixed, int maxTagSets, DecisionInForce decision) {
        this.decision = decision;
        StockQuotas.LevelMemory memory = StockQuotas.LevelMemory.of(ClientQuotaType.class.getClassLoader());
        for (ClientQuotaType type : ClientQuotaType.values()) {
            stock.put(type, new StockQuotas(memory));
            tagSets.put(type, new TagSets(configured(type), maxTagSets));
        }
        inForce = made(exempt, groups, fixed, new ExemptSeen());
        // A tag set follows from these quotas, from what is in force, which comes with an empty memo, and from which tag sets were forgotten.
        stock.forEach((type, quotas) -> quotas.whenChanged(() -> {
            tagSets.get(type).quotasChanged();
            inForce.memos[type.ordinal()].forget();
        }));
    }

    private InForce made(ExemptPrincipals exempt, Groups groups, Function<ClientQuotaType, StaticQuotas> fixed, ExemptSeen seen) {
        ClientQuotaType[] types = ClientQuotaType.values();
        ConfiguredQuotas[] quotas = new ConfiguredQuotas[types.length];
        TagSetMemo[] memos = new TagSetMemo[types.length];
        for (ClientQuotaType type : types) {
            quotas[type.ordinal()] = new ConfiguredQuotas(type, stock(type), fixed.apply(type), groups);
            memos[type.ordinal()] = new TagSetMemo();
        }
        return new InForce(new PrincipalResolver(exempt, groups), groups, quotas, memos, seen, exempt.agentQuota());
    }

    /** Requests use these from now on, all of them at once. Tag sets stay, with their figures. */
    public void configure(ExemptPrincipals exempt, Groups groups, Function<ClientQuotaType, StaticQuotas> fixed) {
        inForce = made(exempt, groups, fixed, inForce.exemptSeen.of(exempt));
        metadataWriterNotExempt = null;
        tagSets.values().forEach(TagSets::quotasChanged);
    }

    /** The quota groups in force. */
    public Groups groups() {
        return inForce.groups;
    }

    /** The quotas of a type that were set with the standard tools. */
    public StockQuotas stock(ClientQuotaType type) {
        return stock.get(type);
    }

    /** All quotas of a type, those in force when they are asked for. */
    public Quotas configured(ClientQuotaType type) {
        return new Quotas() {
            @Override
            public StockQuotas.Pair meteredAs(String sanitizedUser, String clientId) {
                return inForce.quotas[type.ordinal()].meteredAs(sanitizedUser, clientId);
            }

            @Override
            public Double limit(String user, String clientId) {
                return inForce.quotas[type.ordinal()].limit(user, clientId);
            }
        };
    }

    public TagSets tagSets(ClientQuotaType type) {
        return tagSets.get(type);
    }

    /** The pool that all clients share in PAUSE. */
    public TagSet paused() {
        return paused;
    }

    /** The pool that clients without a baseline share in THROTTLE. */
    public TagSet newcomers() {
        return newcomers;
    }

    /** The decision by which producers are held. */
    public DecisionInForce decision() {
        return decision;
    }

    /** The admission of requests in THROTTLE, where it holds producers. */
    public Admission admission() {
        return admission;
    }

    /** The second to note uses under, since the node started. */
    public void nowSeconds(int seconds) {
        nowSeconds = seconds;
    }

    /** Counts the clients without a quota, if quotas have changed. */
    public void recount() {
        tagSets.values().forEach(TagSets::recount);
    }

    /** Forgets clients that are gone. */
    public void forgetUnused() {
        State state = decision.now().governed();
        tagSets.forEach((type, sets) -> {
            // The rates of clients before a THROTTLE or a PAUSE are needed until it ends, which may take hours. In THROTTLE others
            // come, each with a tag set of its own where there is a default quota; in PAUSE no client does.
            Predicate<TagSet> needless = state == State.OPEN || type != ClientQuotaType.PRODUCE ? set -> true
                : set -> state == State.THROTTLE && !set.hasBaseline();
            if (sets.forgetUnusedSince(nowSeconds - UNUSED_SECONDS, needless)) {
                inForce.memos[type.ordinal()].forget();
            }
        });
        inForce.exemptSeen.forgetUnseenSince(nowSeconds - SEEN_SECONDS);
    }

    public List<ExemptSeen.Seen> exemptSeen() {
        return inForce.exemptSeen.list();
    }

    /** The tags under which the exempt principals seen lately are metered. */
    public List<Map<String, String>> exemptTags() {
        return exemptSeen().stream().map(seen -> inForce.principals.of(KafkaNames.principal(seen.principal())).exemptTags())
            .filter(Objects::nonNull).toList();
    }

    public int tagSetCount() {
        return tagSets.values().stream().mapToInt(TagSets::size).sum();
    }

    /** The tags under which this client is metered now. */
    public Map<String, String> tags(ClientQuotaType type, KafkaPrincipal principal, String clientIdOrNull) {
        String clientId = clientIdOrNull == null ? "" : clientIdOrNull;
        InForce current = inForce;
        // Asked for first: a change from here on, while the tag set is found, makes another generation.
        TagSetMemo.Generation generation = current.memos[type.ordinal()].generation();
        TagSetMemo.Known known = generation.find(principal, clientId);
        State state = governed(type);
        return known != null ? tags(type, known, state) : tagsOfUnknown(type, current, generation, current.principals.of(principal), clientId, state);
    }

    private Map<String, String> tagsOfUnknown(ClientQuotaType type, InForce current, TagSetMemo.Generation generation, PrincipalResolver.Resolved principal,
                                              String clientId, State state) {
        if (principal.exemptTags() != null && type != ClientQuotaType.CONTROLLER_MUTATION) {
            current.exemptSeen.note(principal.name(), clientId, nowSeconds);
            return principal.exemptTags();
        }
        noteMetadataWriter(type, principal, clientId);
        if (state == State.PAUSE) {
            // No client gets a new tag set.
            return use(paused);
        }
        TagSets sets = tagSets.get(type);
        StockQuotas.Pair pair = pair(type, current, principal, clientId);
        TagSet tagSet = sets.of(pair);
        TagSetMemo.Known known = new TagSetMemo.Known(principal.principal(), clientId, tagSet);
        // A client that shares a tag set for want of room gets one of its own once there is room again.
        if (tagSet != sets.overflow()) {
            current.memos[type.ordinal()].remember(generation, known);
        }
        return tags(type, known, state);
    }

    private static StockQuotas.Pair pair(ClientQuotaType type, InForce current, PrincipalResolver.Resolved principal, String clientId) {
        return current.quotas[type.ordinal()].meteredAs(current.group(principal, clientId), principal.sanitizedUser(), clientId);
    }

    /** The tags of clients with this tag set in that state: their own, or those of the pool that they share. */
    private Map<String, String> tags(ClientQuotaType type, TagSetMemo.Known known, State state) {
        TagSet own = known.tagSet();
        if (state == State.PAUSE) {
            return use(paused);
        }
        own.touch(nowSeconds);
        if (state == State.THROTTLE && isInPool(own)) {
            return use(newcomers);
        }
        own.meter(nowSeconds);
        return known.tags();
    }

    /** The state by whose limits clients go in this type: only producers are ever held. */
    private State governed(ClientQuotaType type) {
        return type == ClientQuotaType.PRODUCE ? decision.expireIfDue().governed() : State.OPEN;
    }

    private void noteMetadataWriter(ClientQuotaType type, PrincipalResolver.Resolved principal, String clientId) {
        if (type == ClientQuotaType.PRODUCE && clientId.startsWith(METADATA_WRITER) && metadataWriterNotExempt == null) {
            metadataWriterNotExempt = principal.name();
        }
    }

    /** The quota group of a client, or null. */
    public Group group(KafkaPrincipal principal, String clientIdOrNull) {
        InForce current = inForce;
        return current.group(current.principals.of(principal), clientIdOrNull == null ? "" : clientIdOrNull);
    }

    /** Whether these clients share the newcomers' pool in THROTTLE. */
    private boolean isInPool(TagSet tagSet) {
        return !admission.inForce() && !tagSet.hasBaseline() && quota(ClientQuotaType.PRODUCE, tagSet.tags()) == null;
    }

    private Double quota(ClientQuotaType type, Map<String, String> tags) {
        return inForce.quotas[type.ordinal()].limit(tags);
    }

    private Map<String, String> use(TagSet tagSet) {
        tagSet.touch(nowSeconds);
        return tagSet.tags();
    }

    /** The principal that writes the metadata of tiered storage without being exempt, or null where none has been seen. */
    public String metadataWriterNotExempt() {
        return metadataWriterNotExempt;
    }

    /**
     * The tag set whose share decides whether a produce request of this client is admitted, or null for an exempt principal.
     *
     * @param factor the worst throttle factor among the topics that it writes to
     */
    public TagSet admitted(KafkaPrincipal principal, String clientIdOrNull, double factor) {
        String clientId = clientIdOrNull == null ? "" : clientIdOrNull;
        InForce current = inForce;
        TagSetMemo.Known known = producer(current, principal, clientId);
        StockQuotas.Pair pair = known == null ? producerPair(current, principal, clientId) : null;
        if (known == null && pair == null) {
            return null;
        }
        TagSet tagSet = known != null ? known.tagSet() : tagSets.get(ClientQuotaType.PRODUCE).of(pair);
        tagSet.ask(nowSeconds);
        tagSet.noteFactor(factor, nowSeconds);
        return tagSet;
    }

    /** A produce request of this client was refused for a pause. */
    public void paused(KafkaPrincipal principal, String clientIdOrNull) {
        TagSetMemo.Known known = producer(inForce, principal, clientIdOrNull == null ? "" : clientIdOrNull);
        if (known != null) {
            known.tagSet().noteFactor(0, nowSeconds);
        }
    }

    /** A produce request of this client writes to these topics, or would. An exempt principal's are not noted. */
    public void noteTopics(KafkaPrincipal principal, String clientIdOrNull, Iterable<String> topics) {
        String clientId = clientIdOrNull == null ? "" : clientIdOrNull;
        InForce current = inForce;
        TagSetMemo.Known known = producer(current, principal, clientId);
        StockQuotas.Pair pair = known == null ? producerPair(current, principal, clientId) : null;
        TagSet tagSet = known != null ? known.tagSet() : pair == null ? null : tagSets.get(ClientQuotaType.PRODUCE).knownOrOverflow(pair);
        if (tagSet != null) {
            topics.forEach(topic -> tagSet.noteTopic(topic, nowSeconds));
        }
    }

    private static TagSetMemo.Known producer(InForce current, KafkaPrincipal principal, String clientId) {
        return current.memos[ClientQuotaType.PRODUCE.ordinal()].generation().find(principal, clientId);
    }

    /** Null for an exempt principal. */
    private static StockQuotas.Pair producerPair(InForce current, KafkaPrincipal principal, String clientId) {
        PrincipalResolver.Resolved resolved = current.principals.of(principal);
        return resolved.exemptTags() != null ? null : pair(ClientQuotaType.PRODUCE, current, resolved, clientId);
    }

    /** Whether this principal is never held. */
    public boolean isExempt(KafkaPrincipal principal) {
        return exemptTags(principal) != null;
    }

    /** The tags under which this principal is metered if it is exempt, otherwise null. */
    public Map<String, String> exemptTags(KafkaPrincipal principal) {
        return inForce.principals.of(principal).exemptTags();
    }

    /** The produce quota of each agent's principal, bytes per second. */
    public double agentQuota() {
        return inForce.agentQuota;
    }

    /** Tags under which no client that is held now is released, for when the right ones could not be found. */
    public Map<String, String> safeTags(ClientQuotaType type) {
        return switch (governed(type)) {
            case PAUSE -> Tags.PAUSED;
            case THROTTLE -> Tags.NEWCOMERS;
            case OPEN -> Tags.OVERFLOW;
        };
    }

    /** The limit of these tags now, or null if they have none or are not in use. */
    public Double limit(ClientQuotaType type, Map<String, String> tags) {
        if (Tags.isExempt(tags)) {
            return type == ClientQuotaType.PRODUCE && Tags.isAgent(tags) && Double.isFinite(inForce.agentQuota) ? (Double) inForce.agentQuota : null;
        }
        if (type != ClientQuotaType.PRODUCE) {
            return tags.equals(Tags.OVERFLOW) ? null : quota(type, tags);
        }
        State state = governed(type);
        if (tags.equals(Tags.PAUSED)) {
            return state == State.PAUSE ? (Double) paused.limit() : null;
        }
        if (tags.equals(Tags.NEWCOMERS)) {
            return state == State.THROTTLE ? (Double) newcomers.limit() : null;
        }
        // A client in there has no quota; its tags would match a default user's.
        Double quota = tags.equals(Tags.OVERFLOW) ? null : quota(type, tags);
        if (state == State.THROTTLE) {
            TagSet tagSet = tagSets.get(type).find(tags.get(Tags.USER), tags.get(Tags.CLIENT_ID));
            if (tagSet != null && tagSet.limit() != TagSet.NO_LIMIT) {
                return quota == null ? (Double) tagSet.limit() : (Double) Math.min(quota, tagSet.limit());
            }
        }
        return quota;
    }

    /** The limit for when none could be found: that of the pool in force, or null while producers are not held. */
    public Double safeLimit(ClientQuotaType type) {
        return switch (governed(type)) {
            case PAUSE -> (Double) paused.limit();
            case THROTTLE -> (Double) newcomers.limit();
            case OPEN -> null;
        };
    }
}
