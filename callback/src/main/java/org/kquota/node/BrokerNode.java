package org.kquota.node;

import static org.kquota.error.PluginLog.LOG;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.kquota.accounting.RefusalMetrics;
import org.kquota.applied.AppliedReport;
import org.kquota.applied.AppliedState;
import org.kquota.config.KquotaConfig;
import org.kquota.config.LiveProperties;
import org.kquota.decision.BootClock;
import org.kquota.decision.DecisionFile;
import org.kquota.decision.DecisionFileEvents;
import org.kquota.decision.DecisionInForce;
import org.kquota.decision.DecisionWatch;
import org.kquota.decision.EffectiveDecision;
import org.kquota.decision.Mode;
import org.kquota.decision.Scope;
import org.kquota.decision.State;
import org.kquota.error.Errors;
import org.kquota.fence.Fence;
import org.kquota.govern.Figures;
import org.kquota.govern.Governor;
import org.kquota.metering.JmxProduceRates;
import org.kquota.metering.NodeQuotas;
import org.kquota.metering.ProduceRates;
import org.kquota.share.LedPartitions;
import org.kquota.threshold.Thresholds;

import java.io.IOException;
import java.util.function.LongSupplier;

/**
 * The plug-in's life on one node: it looks at the decision, has the governor act on it, and logs changes. Kafka
 * builds the plug-in twice on a node with both roles, over the same metrics: both instances share this.
 */
public final class BrokerNode implements LiveProperties.Target, AppliedReport.Source, AutoCloseable {
    private static final int START_SECONDS = 60;

    private final LiveProperties liveProperties;
    private final Errors errors = new Errors();
    private final NodeQuotas quotas;
    private final Thresholds thresholds;
    private final Fence fence;
    private final RefusalMetrics refusalMetrics;
    private final LimitResets resets = new LimitResets();
    private final Leaders leaders;
    private final ProduceRates rates = new JmxProduceRates();
    private final Governor governor;
    private final AdmissionPlanner admissions;
    private final ExemptRates exemptRates;
    private final PeriodicChecks checks;
    private final OwnDisks disks;
    private final DecisionJudge judge;
    private final LongSupplier nanoTime;
    private final long startNanos;
    private final BootClock bootClock;
    private final AppliedReport report;
    /** These two are not started on a controller. */
    private final NodeThreads threads;
    private final DecisionFileEvents fileEvents;

    private volatile Mode brokerMode;
    private volatile String clusterId;
    private volatile Figures figures = Figures.NONE;
    private volatile long decisionSinceNanos;
    private EffectiveDecision inForce;
    private long lastStepNanos;

    BrokerNode(KquotaConfig config, BootClock bootClock) {
        this(config, bootClock, System::nanoTime);
    }

    /** @param nanoTime the clock, as System.nanoTime() */
    BrokerNode(KquotaConfig config, BootClock bootClock, LongSupplier nanoTime) {
        this.liveProperties = new LiveProperties(this, config, errors);
        this.bootClock = bootClock;
        this.nanoTime = nanoTime;
        this.startNanos = nanoTime.getAsLong();
        this.brokerMode = config.mode();
        this.inForce = config.isBroker() ? EffectiveDecision.lost(config.lostAction().state(), brokerMode, "it has not been read yet")
            : EffectiveDecision.lost(State.OPEN, Mode.OBSERVE, "this node is no broker");
        this.quotas = new NodeQuotas(config.exemptPrincipals(), config.groups(), config::staticQuotas, config.maxTagSets(), new DecisionInForce(inForce));
        this.thresholds = new Thresholds(config.topicsFile(), config.ownTopics(), this::whyTopicsAreNotRefused, errors);
        this.leaders = new Leaders(liveProperties, thresholds, resets, errors, bootClock, nanoTime);
        this.admissions = new AdmissionPlanner(quotas);
        this.fence = new Fence(quotas, thresholds, errors, this::fenceFaulted, nanoTime);
        this.exemptRates = new ExemptRates(quotas, rates, fence.debts(), startNanos);
        this.refusalMetrics = new RefusalMetrics(fence.refused());
        this.governor = new Governor(config.governor(), quotas.configured(ClientQuotaType.PRODUCE), quotas.tagSets(ClientQuotaType.PRODUCE),
            quotas.paused(), quotas.newcomers(), rates);
        this.checks = new PeriodicChecks(quotas, rates, errors, leaders::whyOld);
        this.disks = new OwnDisks(config.nodeId(), errors, nanoTime);
        this.judge = new DecisionJudge(new DecisionWatch(new DecisionFile(config.decisionFile()), bootClock, nanoTime, config.nodeId()), disks, fence,
            () -> admissions.isPossible(nanoTime.getAsLong()), errors, nanoTime);
        this.report = new AppliedReport(this);
        this.threads = new NodeThreads(config.nodeId(), this::step, this::stepIfNews, this::report, errors);
        this.fileEvents = new DecisionFileEvents(config.decisionFile(), "kquota-watch-" + config.nodeId(), threads::lookNow);
    }

    /** Reads the node's last report, decides before the first request can come in, and starts the threads. A controller does none of that. */
    void start() {
        KquotaConfig config = config();
        if (!config.isBroker()) {
            return;
        }
        checks.begin(config);
        clusterId(MetaProperties.clusterId(config.formattedDirs()));
        leaders.read(clusterId);
        governor.remember(report.recall());
        lastStepNanos = nanoTime.getAsLong();
        step();
        LOG.info("kquota is in force on broker {}: mode {}, {}; exempt are {}", config.nodeId(), now().mode().text(), now().sentence(), config.exemptPrincipals());
        threads.start();
        fileEvents.start();
    }

    /** The quotas that request threads ask for. */
    @Override
    public NodeQuotas quotas() {
        return quotas;
    }

    /** The fence that the node's authorizers ask, where there are any of ours. */
    @Override
    public Fence fence() {
        return fence;
    }

    /** The clients and groups whose requests it refused, among the broker's metrics. */
    public RefusalMetrics refusalMetrics() {
        return refusalMetrics;
    }

    /** The thresholds of topics. */
    Thresholds thresholds() {
        return thresholds;
    }

    @Override
    public EffectiveDecision now() {
        return quotas.decision().now();
    }

    // ---- on the broker's metadata threads

    public void update(ClientQuotaType type, ClientQuotaEntity entity, double bound) {
        quotas.stock(type).update(entity, bound);
    }

    public void remove(ClientQuotaType type, ClientQuotaEntity entity) {
        quotas.stock(type).remove(entity);
    }

    void clusterId(String id) {
        if (id != null && !id.isEmpty()) {
            clusterId = id;
        }
    }

    /** The leaders of partitions may have changed. */
    public void metadata(Cluster cluster) {
        if (cluster.clusterResource() != null) {
            clusterId(cluster.clusterResource().clusterId());
        }
        leaders.ofBroker(LedPartitions.of(cluster, config().nodeId()));
        if (!config().isBroker()) {
            // A controller has no thread of ours that would do so.
            int nowSeconds = nowSeconds();
            quotas.nowSeconds(nowSeconds);
            checks.keep(nowSeconds);
        }
    }

    /** A controller has no thread of ours that would log faults. */
    public void logFaultsWithoutThreads() {
        if (!config().isBroker()) {
            errors.log(nanoTime.getAsLong());
        }
    }

    @Override
    public void configure(KquotaConfig next) {
        quotas.configure(next.exemptPrincipals(), next.groups(), next::staticQuotas);
        fence.debts().forget();
        governor.settings(next.governor());
        refusalMetrics.show(next.groups().all());
        resets.limitsChanged();
    }

    @Override
    public void brokerMode(Mode mode) {
        Mode before = brokerMode;
        if (mode == before) {
            return;
        }
        synchronized (this) {
            brokerMode = mode;
            publish(quotas.decision().published());
        }
        resets.modeChanged(mode == Mode.OBSERVE);
        // Last: an appender that hangs may be why the glass is broken.
        LOG.info("{} changes from {} to {}", KquotaConfig.MODE, before.text(), mode.text());
    }

    /**
     * Requests use it from now on; returns the decision that they use. Breaking the glass waits for no thread of ours, and
     * no thread publishes after that what it worked out before.
     */
    private synchronized EffectiveDecision publish(EffectiveDecision next) {
        EffectiveDecision holds = brokerMode == Mode.ENFORCE ? next : next.observed();
        quotas.decision().publish(holds);
        return holds;
    }

    /** The governor has to hold the producers that the fence lets through, and does so after the next look. */
    private void fenceFaulted() {
        threads.lookNow();
    }

    public void join(ResetFlags instance) {
        resets.join(instance);
    }

    public void leave(ResetFlags instance) {
        resets.leave(instance);
    }

    // ---- on the decision thread, every 100 ms, and when the file is replaced

    private void step() {
        step(judge());
    }

    /**
     * Takes a step at once where another state came. A factor that has moved waits until the step is due.
     */
    private boolean stepIfNews() {
        EffectiveDecision judged = judge();
        if (judged.sameSituation(inForce)) {
            return false;
        }
        step(judged);
        return true;
    }

    private void step(EffectiveDecision judged) {
        long nanos = nanoTime.getAsLong();
        int nowSeconds = seconds(nanos);
        quotas.nowSeconds(nowSeconds);
        EffectiveDecision before = inForce;
        boolean limitsMoved = govern(judged, nanos);
        EffectiveDecision next = publish(judged);
        inForce = next;
        admissions.endUnlessWanted(governor);
        thresholds.judge(nanos);
        resets.raiseDue(limitsMoved || before.governed() != next.governed(), quotas.decision().expired(), nanos);
        if (next.decision() != null && (before.decision() == null || next.decision().sequence() != before.decision().sequence())) {
            decisionSinceNanos = nanos;
        }
        if (!before.sameSituation(next)) {
            announce(before, next);
        }
        fence.keep(nanos);
        checks.keep(nowSeconds);
    }

    private EffectiveDecision judge() {
        return judge.judge(clusterId, brokerMode, config().lostAction(), inForce).withFloor(config().factorFloor());
    }

    private boolean govern(EffectiveDecision next, long nanos) {
        double seconds = Math.max(1e-3, (nanos - lastStepNanos) / 1e9);
        lastStepNanos = nanos;
        try {
            boolean possible = admissions.isPossible(nanos);
            boolean fenced = fence.reliable() && (possible || next.governed() != State.THROTTLE);
            boolean changed = next.scope() == Scope.TOPICS ? governor.stepByTopic(next.governed(), next.governedFactor(), seconds)
                : governor.step(next.governed(), next.governedFactor(), fenced, seconds);
            figures = governor.figures();
            admissions.plan(governor, next, figures, exemptRates.look(config().governor().windowSeconds(), nanos), seconds, nanos);
            return changed;
        } catch (RuntimeException | Error e) {
            errors.count(Errors.Kind.GOVERNOR, e);
            return false;
        }
    }

    private void announce(EffectiveDecision before, EffectiveDecision next) {
        if (next.lost() != null && before.lost() == null) {
            errors.count(Errors.Kind.DECISION, next.lost());
        }
        if (next.kept() != null && before.kept() == null) {
            errors.count(Errors.Kind.DECISION, next.kept());
        }
        if (next.lost() != null || next.kept() != null || next.state() == State.PAUSE) {
            LOG.warn("{}", next.sentence());
        } else {
            LOG.info("{}", next.sentence());
        }
        threads.reportNow();
    }

    /** A threshold is the broker's own affair: the decision file has no part in it. */
    private String whyTopicsAreNotRefused() {
        if (brokerMode != Mode.ENFORCE) {
            return KquotaConfig.MODE + " is " + brokerMode.text();
        }
        // The broker makes its authorizer after this.
        boolean starting = nowSeconds() < START_SECONDS;
        return fence.installed() || starting ? null : "authorizer.class.name is not " + KquotaConfig.AUTHORIZER;
    }

    // ---- for reports

    private void report() {
        errors.log(nanoTime.getAsLong());
        thresholds.read();
        leaders.read(clusterId);
        report.write();
        try {
            refusalMetrics.update();
        } catch (RuntimeException e) {
            errors.count(Errors.Kind.CLIENTS, e);
        }
    }

    /** Which of them change while the broker runs. */
    public LiveProperties liveProperties() {
        return liveProperties;
    }

    @Override
    public KquotaConfig config() {
        return liveProperties.inForce();
    }

    @Override
    public Errors errors() {
        return errors;
    }

    @Override
    public Figures figures() {
        return figures;
    }

    @Override
    public BootClock bootClock() {
        return bootClock;
    }

    @Override
    public Mode brokerMode() {
        return brokerMode;
    }

    @Override
    public String clusterId() {
        return clusterId;
    }

    @Override
    public Integer clusterTopics() {
        return leaders.clusterTopics();
    }

    @Override
    public AppliedState.Leaders leaders() throws IOException {
        return leaders.report();
    }

    @Override
    public int nowSeconds() {
        return seconds(nanoTime.getAsLong());
    }

    private int seconds(long nanos) {
        return (int) ((nanos - startNanos) / 1_000_000_000L);
    }

    /** Time since the decision in force was first seen, in seconds; 0 while the decision is lost. */
    double decisionAgeSeconds() {
        return now().lost() == null ? (nanoTime.getAsLong() - decisionSinceNanos) / 1e9 : 0;
    }

    @Override
    public void close() {
        fileEvents.close();
        threads.close();
        disks.close();
        errors.log(nanoTime.getAsLong());
    }
}
