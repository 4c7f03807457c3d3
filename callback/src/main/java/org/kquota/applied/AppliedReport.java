package org.kquota.applied;

import static org.kquota.error.PluginLog.LOG;

import org.kquota.config.KquotaConfig;
import org.kquota.decision.BootClock;
import org.kquota.decision.DecisionFormat;
import org.kquota.decision.EffectiveDecision;
import org.kquota.decision.Mode;
import org.kquota.decision.Scope;
import org.kquota.decision.State;
import org.kquota.error.Errors;
import org.kquota.fence.Fence;
import org.kquota.govern.Figures;
import org.kquota.metering.NodeQuotas;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Reports to the local agent what this broker applies, off the request path. */
public final class AppliedReport {
    private final Source source;
    private final AppliedFile file;
    private final ClientReport clientReport;
    private final OfflineLogDirs offlineLogDirs;
    private final List<AppliedState.LogDir> logDirs;
    private List<String> lastOffline = List.of();
    private boolean failing;
    private long startedUptimeMs = -1;

    /** The source of the reported figures. */
    public interface Source {
        KquotaConfig config();

        BootClock bootClock();

        Errors errors();

        NodeQuotas quotas();

        Fence fence();

        /** The governor's, after its last step. */
        Figures figures();

        /** The decision that holds now, the end of the lease included. */
        EffectiveDecision now();

        /** The broker property, regardless of the decision. */
        Mode brokerMode();

        /** The cluster's id, or null while it is not known. */
        String clusterId();

        /** How many topics the cluster has, or null while that is not known. */
        Integer clusterTopics();

        /** Whose leaders of partitions it divides by, or null where it divides nothing by them. */
        AppliedState.Leaders leaders() throws IOException;

        /** Seconds since this node started, the clock of what was seen when. */
        int nowSeconds();
    }

    public AppliedReport(Source source) {
        this.source = source;
        this.file = new AppliedFile(source.config().appliedFile());
        this.clientReport = new ClientReport(source);
        this.offlineLogDirs = new OfflineLogDirs(source.config().logDirs());
        this.logDirs = source.config().logDirs().stream().map(AppliedReport::logDir).toList();
    }

    /** Looks once, at the broker's start: later a broken disk would keep the report waiting. */
    private static AppliedState.LogDir logDir(String configured) {
        Path path = Path.of(configured).toAbsolutePath();
        try {
            Map<String, Object> attributes = Files.readAttributes(path, "unix:dev,ino");
            return new AppliedState.LogDir(path.toString(), (Long) attributes.get("dev"), (Long) attributes.get("ino"));
        } catch (IOException | RuntimeException e) {
            LOG.info("{} cannot be looked at, the agent compares its path alone: {}", path, e.toString());
            return new AppliedState.LogDir(path.toString(), null, null);
        }
    }

    /**
     * Takes over from the last report before the broker's restart which log dirs were offline, and returns the total rate of all producers then, in bytes
     * per second; 0 without a report. To be called before the first report is written. After a restart all producers are newcomers; this rate keeps them
     * from starting at next to nothing.
     */
    public double recall() {
        try {
            AppliedState before = AppliedState.fromJson(Files.readAllBytes(file.path()));
            if (before.brokerId() != source.config().nodeId()) {
                return 0;
            }
            offlineLogDirs.remember(before.offlineLogDirs());
            return before.governor().baselineByteRate();
        } catch (NoSuchFileException e) {
            return 0;
        } catch (IOException | RuntimeException e) {
            LOG.info("{} of an earlier run cannot be read, its baseline is forgotten: {}", file.path(), e.toString());
            return 0;
        }
    }

    public void write() {
        try {
            file.write(state().toJson());
            if (failing) {
                LOG.info("{} is written again", file.path());
            }
            failing = false;
        } catch (IOException | RuntimeException | Error e) {
            source.errors().count(Errors.Kind.APPLIED_FILE, e);
            failing = true;
        }
    }

    private AppliedState state() throws IOException {
        long uptimeMs = source.bootClock().uptimeMs();
        int nowSeconds = source.nowSeconds();
        if (startedUptimeMs < 0) {
            startedUptimeMs = uptimeMs - nowSeconds * 1000L;
        }
        EffectiveDecision decision = source.now();
        Figures figures = source.figures();
        List<AppliedState.Exempt> exempt = source.quotas().exemptSeen().stream()
            .map(seen -> new AppliedState.Exempt(seen.principal(), List.copyOf(seen.lastSeenSeconds().keySet()),
                Math.max(0, uptimeMs - (nowSeconds - seen.latestSeconds()) * 1000L)))
            .toList();
        List<AppliedState.Error> errors = new ArrayList<>();
        for (Errors.Kind kind : Errors.Kind.values()) {
            Errors.Tally tally = source.errors().tally(kind);
            errors.add(new AppliedState.Error(kind.name().toLowerCase(Locale.ROOT), tally.count(), tally.lastMessage()));
        }
        return new AppliedState(
            AppliedState.SCHEMA_VERSION,
            Version.TEXT,
            List.of(DecisionFormat.SCHEMA_VERSION),
            source.bootClock().bootId(),
            uptimeMs,
            ProcessHandle.current().pid(),
            startedUptimeMs,
            source.clusterId(),
            source.config().nodeId(),
            decision.decision() == null ? null : decision.decision().sequence(),
            decision.lost(),
            decision.mode(),
            // The property may have changed since; the decision in force follows from its old value.
            decision.mode() == Mode.ENFORCE ? Mode.ENFORCE : source.brokerMode(),
            decision.state(),
            decision.factor(),
            mechanism(decision),
            source.quotas().admission().starving(),
            decision.scope(),
            source.clusterTopics(),
            decision.kept(),
            source.leaders(),
            exempt,
            offline(),
            logDirs,
            errors,
            new AppliedState.GovernorFigures(figures.tagSets(), figures.observedRate(), figures.baselineRate(),
                figures.poolObservedRate(), figures.poolLimit(), figures.muteSeconds()),
            new AppliedState.FenceFigures(source.fence().installed(), source.fence().refusals()),
            clients());
    }

    /** Null where they cannot be read: the report itself matters more. */
    private ClientFigures clients() {
        try {
            return clientReport.figures();
        } catch (RuntimeException e) {
            source.errors().count(Errors.Kind.CLIENTS, e);
            return null;
        }
    }

    private AppliedState.Mechanism mechanism(EffectiveDecision decision) {
        if (decision.scope() == Scope.TOPICS && decision.enforced() != State.OPEN) {
            return AppliedState.Mechanism.FENCE;
        }
        return switch (decision.enforced()) {
            case OPEN -> AppliedState.Mechanism.NONE;
            case THROTTLE -> source.quotas().admission().inForce() ? AppliedState.Mechanism.FENCE : AppliedState.Mechanism.GOVERNOR;
            case PAUSE -> source.fence().reliable() ? AppliedState.Mechanism.FENCE : AppliedState.Mechanism.GOVERNOR;
        };
    }

    private List<String> offline() {
        try {
            lastOffline = offlineLogDirs.list();
        } catch (IllegalStateException e) {
            source.errors().count(Errors.Kind.LOG_DIRS, e);
        }
        return lastOffline;
    }
}
