package org.kquota;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.kquota.decision.BootClock;
import org.kquota.decision.DecisionFile;
import org.kquota.decision.DecisionWatch;
import org.kquota.decision.Mode;
import org.kquota.decision.State;
import org.kquota.decision.Verdict;
import org.kquota.govern.Figures;
import org.kquota.govern.Governor;
import org.kquota.govern.JmxProduceRates;
import org.kquota.govern.ProduceRates;
import org.kquota.quota.ExemptSeen;
import org.kquota.quota.StockQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;
import org.kquota.quota.Tags;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * The plug-in's state for one node. Kafka builds the plug-in twice on a node with both roles, over the same metrics:
 * both instances share this. Request threads read volatile fields and concurrent maps, and take no lock.
 */
final class BrokerNode implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(KquotaCallback.class);
    private static final int UNUSED_SECONDS = 3600;
    private static final int SEEN_SECONDS = 600;
    private static final int HOUSEKEEPING_SECONDS = 60;

    private final KquotaConfig config;
    private final Errors errors = new Errors();
    private final Clients clients;
    private final ExemptSeen exemptSeen = new ExemptSeen();
    private final Map<ClientQuotaType, StockQuotas> quotas = new EnumMap<>(ClientQuotaType.class);
    private final Map<ClientQuotaType, TagSets> tagSets = new EnumMap<>(ClientQuotaType.class);
    private final List<ResetFlags> instances = new CopyOnWriteArrayList<>();
    private final ProduceRates rates = new JmxProduceRates();
    private final Governor governor;
    private final DecisionWatch watch;
    private final long startNanos = System.nanoTime();
    private final BootClock bootClock;
    private final Heartbeat heartbeat;
    private final AppliedReport appliedReport;

    private volatile Posture posture;
    private volatile Mode brokerMode;
    private volatile String clusterId;
    private volatile int nowSeconds;
    private volatile Figures figures = Figures.NONE;
    private long lastStepNanos;
    private int lastHousekeepingSeconds;
    private long reportedRequestErrors;

    BrokerNode(KquotaConfig config, BootClock bootClock) {
        this.config = config;
        this.bootClock = bootClock;
        this.brokerMode = config.mode();
        this.clients = new Clients(config.exemptPrincipals());
        StockQuotas.LevelMemory memory = StockQuotas.LevelMemory.of(AppInfoParser.getVersion());
        for (ClientQuotaType type : ClientQuotaType.values()) {
            quotas.put(type, new StockQuotas(memory));
            tagSets.put(type, new TagSets(quotas.get(type), config.maxTagSets()));
        }
        this.governor = new Governor(config.governor(), quotas.get(ClientQuotaType.PRODUCE), tagSets.get(ClientQuotaType.PRODUCE),
            rates, AppliedReport.rememberedBaseline(config));
        if (config.isBroker()) {
            this.watch = new DecisionWatch(new DecisionFile(config.decisionFile()), bootClock, System::nanoTime, config.nodeId());
            this.posture = Posture.lost(config.lostState(), brokerMode, "it has not been read yet");
            this.lastStepNanos = System.nanoTime();
            // The first look is made before the first request can come in.
            tick();
            LOG.info("kquota is in force on broker {}: mode {}, {}", config.nodeId(), posture.mode().text(), posture.sentence());
            this.appliedReport = new AppliedReport(this);
            this.heartbeat = new Heartbeat(config.nodeId(), this::tick, appliedReport::write);
            heartbeat.start();
        } else {
            this.watch = null;
            this.appliedReport = null;
            this.heartbeat = null;
            this.posture = Posture.lost(State.OPEN, Mode.OBSERVE, "this node is no broker");
        }
    }

    // ---- on request threads

    Map<String, String> tags(ClientQuotaType type, KafkaPrincipal principal, String clientIdOrNull) {
        String clientId = clientIdOrNull == null ? "" : clientIdOrNull;
        Clients.Client client = clients.of(principal);
        if (client.exemptTags() != null && type != ClientQuotaType.CONTROLLER_MUTATION) {
            exemptSeen.note(client.principal(), clientId, nowSeconds);
            return client.exemptTags();
        }
        if (type == ClientQuotaType.PRODUCE) {
            return produceTags(client, clientId);
        }
        TagSet tagSet = tagSets.get(type).of(client.sanitizedUser(), clientId);
        tagSet.touch(nowSeconds);
        return tagSet.tags();
    }

    private Map<String, String> produceTags(Clients.Client client, String clientId) {
        State state = now().enforced();
        if (state == State.PAUSE) {
            return Tags.PAUSED;
        }
        TagSet tagSet = tagSets.get(ClientQuotaType.PRODUCE).of(client.sanitizedUser(), clientId);
        tagSet.touch(nowSeconds);
        if (state == State.THROTTLE && !tagSet.hasBaseline()
            && quotas.get(ClientQuotaType.PRODUCE).limit(tagSet.tags()) == null) {
            return Tags.NEWCOMERS;
        }
        return tagSet.tags();
    }

    /** Tags under which nothing that is held now goes free, for when the right ones could not be found out. */
    Map<String, String> safeTags(ClientQuotaType type) {
        State state = type == ClientQuotaType.PRODUCE ? now().enforced() : State.OPEN;
        return switch (state) {
            case PAUSE -> Tags.PAUSED;
            case THROTTLE -> Tags.NEWCOMERS;
            case OPEN -> Tags.OVERFLOW;
        };
    }

    Double limit(ClientQuotaType type, Map<String, String> tags) {
        if (Tags.isExempt(tags)) {
            return null;
        }
        if (type != ClientQuotaType.PRODUCE) {
            return quotas.get(type).limit(tags);
        }
        State state = now().enforced();
        if (tags.equals(Tags.PAUSED)) {
            return state == State.PAUSE ? (Double) governor.paused().limit() : null;
        }
        if (tags.equals(Tags.NEWCOMERS)) {
            return state == State.THROTTLE ? (Double) governor.newcomers().limit() : null;
        }
        Double quota = quotas.get(type).limit(tags);
        if (state == State.THROTTLE) {
            TagSet tagSet = tagSets.get(type).find(tags.get(Tags.USER), tags.get(Tags.CLIENT_ID));
            if (tagSet != null && tagSet.limit() != TagSet.NO_LIMIT) {
                return quota == null ? (Double) tagSet.limit() : (Double) Math.min(quota, tagSet.limit());
            }
        }
        return quota;
    }

    /** The limit for when none could be found out: that of the pool in force, or null while producers are not held. */
    Double safeLimit(ClientQuotaType type) {
        State state = type == ClientQuotaType.PRODUCE ? now().enforced() : State.OPEN;
        return switch (state) {
            case PAUSE -> (Double) governor.paused().limit();
            case THROTTLE -> (Double) governor.newcomers().limit();
            case OPEN -> null;
        };
    }

    /** What holds now, the end of the lease included. */
    Posture now() {
        return posture.at(System.nanoTime());
    }

    // ---- on the broker's metadata threads

    void update(ClientQuotaType type, ClientQuotaEntity entity, double bound) {
        quotas.get(type).update(entity, bound);
    }

    void remove(ClientQuotaType type, ClientQuotaEntity entity) {
        quotas.get(type).remove(entity);
    }

    void clusterId(String id) {
        if (id != null && !id.isEmpty()) {
            clusterId = id;
        }
    }

    void brokerMode(Mode mode) {
        if (mode != brokerMode) {
            LOG.info("{} changes from {} to {}", KquotaConfig.MODE, brokerMode.text(), mode.text());
            brokerMode = mode;
        }
    }

    void join(ResetFlags instance) {
        instances.add(instance);
    }

    void leave(ResetFlags instance) {
        instances.remove(instance);
    }

    // ---- on the decision thread, every 100 ms

    private void tick() {
        long nanos = System.nanoTime();
        nowSeconds = (int) ((nanos - startNanos) / 1_000_000_000L);
        Posture before = posture;
        Posture next = judge();
        boolean changed = govern(next, nanos);
        posture = next;
        if (changed || before.enforced() != next.enforced()) {
            instances.forEach(instance -> instance.raise(ClientQuotaType.PRODUCE));
        }
        if (!before.sameSituation(next)) {
            announce(before, next);
        }
        if (nowSeconds - lastHousekeepingSeconds >= HOUSEKEEPING_SECONDS) {
            lastHousekeepingSeconds = nowSeconds;
            keepHouse();
        }
    }

    private Posture judge() {
        try {
            Verdict verdict = watch.look(clusterId);
            Mode fileMode = verdict.isLost() ? watch.lastMode() : verdict.decision().mode();
            Mode mode = fileMode == Mode.OBSERVE ? Mode.OBSERVE : brokerMode;
            return verdict.isLost()
                ? Posture.lost(config.lostState(), mode, verdict.lost())
                : Posture.decided(verdict.decision(), mode, verdict.deadlineNanos(), config.lostState());
        } catch (RuntimeException | Error e) {
            errors.count(Errors.Kind.DECISION, e);
            // The last decision stays until its lease runs out: a fault of ours never releases.
            return posture.at(System.nanoTime());
        }
    }

    private boolean govern(Posture next, long nanos) {
        double seconds = Math.max(1e-3, (nanos - lastStepNanos) / 1e9);
        lastStepNanos = nanos;
        try {
            boolean changed = governor.step(next.enforced(), next.factor(), seconds);
            figures = governor.figures();
            return changed;
        } catch (RuntimeException | Error e) {
            errors.count(Errors.Kind.GOVERNOR, e);
            return false;
        }
    }

    private void announce(Posture before, Posture next) {
        if (next.lost() != null && before.lost() == null) {
            errors.count(Errors.Kind.DECISION, next.lost());
        }
        if (next.lost() != null || next.state() == State.PAUSE) {
            LOG.warn("{}", next.sentence());
        } else {
            LOG.info("{}", next.sentence());
        }
        if (heartbeat != null) {
            heartbeat.reportNow();
        }
    }

    private void keepHouse() {
        try {
            checkRatesAreSeen();
        } catch (RuntimeException e) {
            errors.count(Errors.Kind.GOVERNOR, e);
        }
        tagSets.values().forEach(sets -> sets.forgetUnusedSince(nowSeconds - UNUSED_SECONDS));
        exemptSeen.forgetUnseenSince(nowSeconds - SEEN_SECONDS);
        Errors.Tally tally = errors.tally(Errors.Kind.REQUEST);
        if (tally.count() > reportedRequestErrors) {
            LOG.error("{} errors on request threads since the last report; the last one: {}. No request failed, the last safe quota was used.",
                tally.count() - reportedRequestErrors, tally.lastMessage());
            reportedRequestErrors = tally.count();
        }
    }

    private void checkRatesAreSeen() {
        boolean unseen = tagSets.get(ClientQuotaType.PRODUCE).all().stream()
            .filter(set -> nowSeconds - set.lastTouchSeconds() < HOUSEKEEPING_SECONDS / 2)
            .anyMatch(set -> rates.bytesPerSecond(set.tags()).isEmpty());
        if (unseen) {
            String message = "produce rates are not visible over JMX, so mutes can become long: "
                + "metric.reporters must name org.apache.kafka.common.metrics.JmxReporter";
            LOG.warn("{}", message);
            errors.count(Errors.Kind.GOVERNOR, message);
        }
    }

    // ---- for reports

    KquotaConfig config() {
        return config;
    }

    Errors errors() {
        return errors;
    }

    Figures figures() {
        return figures;
    }

    BootClock bootClock() {
        return bootClock;
    }

    Mode brokerMode() {
        return brokerMode;
    }

    String clusterId() {
        return clusterId;
    }

    int nowSeconds() {
        return nowSeconds;
    }

    List<ExemptSeen.Seen> exemptSeen() {
        return exemptSeen.list();
    }

    int tagSetCount() {
        return tagSets.values().stream().mapToInt(TagSets::size).sum();
    }

    @Override
    public void close() {
        if (heartbeat != null) {
            heartbeat.close();
        }
    }
}
