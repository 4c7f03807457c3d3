package org.kquota.node;

import org.kquota.decision.DecisionWatch;
import org.kquota.decision.EffectiveDecision;
import org.kquota.decision.LastDecision;
import org.kquota.decision.LostAction;
import org.kquota.decision.Mode;
import org.kquota.decision.OwnLogDir;
import org.kquota.decision.TopicFactors;
import org.kquota.decision.Verdict;
import org.kquota.error.Errors;
import org.kquota.fence.Fence;

import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;

/** Works out which decision is to hold: by its file, the broker's mode, and what the node can do. Used by the thread that decides. */
final class DecisionJudge {
    private final DecisionWatch watch;
    private final OwnDisks disks;
    private final Fence fence;
    private final BooleanSupplier canAdmit;
    private final Errors errors;
    private final LongSupplier nanoTime;
    private final LastDecision last = new LastDecision();

    /** @param canAdmit whether what lands can be counted, so that throttled topics can be held */
    DecisionJudge(DecisionWatch watch, OwnDisks disks, Fence fence, BooleanSupplier canAdmit, Errors errors, LongSupplier nanoTime) {
        this.watch = watch;
        this.disks = disks;
        this.fence = fence;
        this.canAdmit = canAdmit;
        this.errors = errors;
        this.nanoTime = nanoTime;
    }

    /**
     * Looks at the file.
     *
     * @param clusterId  the broker's cluster, or null while it does not know it yet
     * @param brokerMode the broker property
     * @param lostAction the action while the decision is lost
     * @param inForce    the decision that held until now
     */
    EffectiveDecision judge(String clusterId, Mode brokerMode, LostAction lostAction, EffectiveDecision inForce) {
        EffectiveDecision judged = byFile(clusterId, brokerMode, lostAction, inForce);
        return judged.topics() != null && canHold(judged.topics()) ? judged : judged.forCluster();
    }

    /** Only the fence knows topics. */
    private boolean canHold(TopicFactors topics) {
        return fence.reliable() && (topics.slowest() == 1 || canAdmit.getAsBoolean());
    }

    private EffectiveDecision byFile(String clusterId, Mode brokerMode, LostAction lostAction, EffectiveDecision inForce) {
        try {
            Verdict verdict = watch.look(clusterId);
            Mode fileMode = verdict.isLost() ? watch.lastMode() : verdict.decision().mode();
            Mode mode = fileMode == Mode.OBSERVE ? Mode.OBSERVE : brokerMode;
            if (!verdict.isLost()) {
                last.remember(verdict);
            }
            EffectiveDecision kept = lostAction == LostAction.BOUNDED ? kept(verdict, mode) : null;
            EffectiveDecision otherwise = kept != null ? kept
                : EffectiveDecision.lost(lostAction.state(), mode, verdict.isLost() ? verdict.lost() : EffectiveDecision.LEASE_RAN_OUT);
            return verdict.isLost() ? otherwise : EffectiveDecision.decided(verdict.decision(), mode, verdict.deadlineNanos(), otherwise);
        } catch (RuntimeException | Error e) {
            errors.count(Errors.Kind.DECISION, e);
            // The last decision stays until its lease runs out: a fault of ours never releases.
            return inForce.at(nanoTime.getAsLong());
        }
    }

    /** The decision that holds without a lease, or null. Before the end of a lease it is there for request threads, which may find that end first. */
    private EffectiveDecision kept(Verdict verdict, Mode mode) {
        long nanos = nanoTime.getAsLong();
        List<OwnLogDir> watched = last.watched(verdict.isLost(), nanos);
        disks.watch(watched);
        double seen = disks.headroom(watched, nanos);
        double headroom = Double.isNaN(seen) && verdict.isLost() && last.isLeased(nanos) ? 1 : seen;
        return verdict.isLost() ? last.keep(verdict.lost(), mode, headroom, nanos)
            : last.keep(EffectiveDecision.LEASE_RAN_OUT, mode, headroom, verdict.deadlineNanos());
    }
}
