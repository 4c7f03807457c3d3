package org.kquota.admission;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Which produce requests are admitted in THROTTLE. One thread plans ten times a second; request threads ask, and wait for no other thread. It reads neither clock nor
 * counter: both are passed in.
 */
public final class Admission {
    /** A client that has not asked for this long is not counted among those that want to produce. */
    private static final long ACTIVE_NANOS = 3_000_000_000L;
    /** A client that was refused and has not asked for this long is not waited for. */
    private static final long AWAITED_NANOS = 2_500_000_000L;
    /** Producers keep a record for two minutes, by default (delivery.timeout.ms): older ones expire, and come no more. */
    public static final double RECORD_KEPT_SECONDS = 120;
    /** From then on who appears was not there at the beginning, and has its turn at once. */
    private static final long BEGINNING_NANOS = 1_000_000_000L;

    /** A budget, and the counter that it goes by. */
    private record Plan(Budget budget, LandedBytes landed) {
    }

    /** Null while admission is not in force. */
    private volatile Plan plan;
    private volatile long begunNanos;
    private volatile int starving;
    /** Bytes that have landed, and those that were admitted since the budget was made: until they land they are on their way. */
    private final AtomicLong promised = new AtomicLong();
    private final Queue<ClientShare> appeared = new ConcurrentLinkedQueue<>();
    private List<ClientShare> active = new ArrayList<>();

    /** Whether THROTTLE is held by admission now. */
    public boolean inForce() {
        return plan != null;
    }

    /** How many clients have their turns further apart than producers keep a record: no order of turns can help them. */
    public int starving() {
        return starving;
    }

    /**
     * Whether a request may be appended now.
     *
     * @param factor the worst throttle factor among the topics that it writes to
     * @param nanos  now
     */
    public boolean admits(ClientShare share, double factor, long nanos) {
        Plan inForce = plan;
        if (inForce == null) {
            return true;
        }
        Budget now = inForce.budget;
        double turn = now.turn(nanos);
        ask(share, turn, nanos);
        double bytes = share.requestBytes(now.usualBytes());
        // Without a place it is not its turn: nothing compares with not-a-number.
        double due = share.due();
        if (due <= turn && promise(now.allowed(nanos) - now.kept(due, turn), inForce.landed.bytes(), bytes)) {
            share.charge(bytes, now.cost(bytes * now.factor() / factor, share.weight(now.newcomerWeight())), now.earliest(turn));
            return true;
        }
        share.refuse();
        return false;
    }

    /** A request of this client is refused for another reason than its turn: it waits for the turn like those that are refused for it. */
    public void waits(ClientShare share, long nanos) {
        Plan inForce = plan;
        if (inForce != null) {
            ask(share, inForce.budget.turn(nanos), nanos);
            share.refuse();
        }
    }

    private void ask(ClientShare share, double turn, long nanos) {
        if (share.ask(nanos)) {
            appeared.add(share);
        }
        if (!share.isPlaced() && nanos - begunNanos >= BEGINNING_NANOS) {
            share.place(turn, 0);
        }
    }

    private boolean promise(double allowed, long landed, double bytes) {
        long before;
        long used;
        do {
            before = promised.get();
            used = Math.max(before, landed);
            if (!Budget.hasRoom(allowed - used, bytes)) {
                return false;
            }
        } while (!promised.compareAndSet(before, used + (long) bytes));
        return true;
    }

    /**
     * Makes the next budget, the first one included; on the planning thread.
     *
     * @param landed what has landed of all that the target is of
     * @param nanos  now
     */
    public void plan(Target target, LandedBytes landed, long nanos) {
        long landedBytes = landed.bytes();
        Budget before = budget();
        Demand demand = demand(nanos);
        Budget next = before == null ? Budget.begin(target, demand, landedBytes, 0, nanos) : before.next(target, demand, landedBytes, nanos);
        if (before == null) {
            active.forEach(ClientShare::displace);
            begunNanos = nanos;
        } else {
            for (ClientShare share : active) {
                if (!share.isPlaced()) {
                    share.place(next.turn(), next.cost(share.requestBytes(next.usualBytes()), share.weight(next.newcomerWeight())));
                }
            }
        }
        promised.set(landedBytes);
        plan = new Plan(next, landed);
        starving = (int) active.stream().filter(share -> starves(share, next)).count();
    }

    private static boolean starves(ClientShare share, Budget budget) {
        return budget.secondsBetweenTurns(share.requestBytes(budget.usualBytes()), share.weight(budget.newcomerWeight())) > RECORD_KEPT_SECONDS;
    }

    private Budget budget() {
        Plan inForce = plan;
        return inForce == null ? null : inForce.budget;
    }

    private Demand demand(long nanos) {
        for (ClientShare share = appeared.poll(); share != null; share = appeared.poll()) {
            active.add(share);
        }
        List<ClientShare> still = new ArrayList<>(active.size());
        double weight = 0;
        int newcomers = 0;
        double round = 0;
        double largest = 0;
        double behind = Double.POSITIVE_INFINITY;
        double waiting = 0;
        Budget before = budget();
        double usual = before == null ? Demand.NONE.usualRequestBytes() : before.usualBytes();
        double turn = before == null ? 0 : before.turn(nanos);
        for (ClientShare share : active) {
            if (!share.askedSince(nanos - ACTIVE_NANOS)) {
                share.unlist();
                continue;
            }
            still.add(share);
            double unexpected = share.unexpectedBytes(usual);
            if (before != null && unexpected > 0) {
                share.postpone(before.cost(unexpected, share.weight(before.newcomerWeight())), before.earliest(turn), before.latest(turn));
            }
            weight += share.weight();
            newcomers += share.isNewcomer() ? 1 : 0;
            double bytes = share.requestBytes(usual);
            round += bytes;
            largest = Math.max(largest, bytes);
            if (share.isRefused() && share.isPlaced() && share.askedSince(nanos - AWAITED_NANOS)) {
                behind = Math.min(behind, share.due());
                waiting += share.due() <= turn ? bytes : 0;
            }
        }
        active = still;
        return new Demand(weight, newcomers, round, largest, still.size(), behind, waiting);
    }

    /** Admits everything again, until the next budget. */
    public void end() {
        if (plan != null) {
            plan = null;
            starving = 0;
            active.forEach(ClientShare::unlist);
            active = new ArrayList<>();
        }
    }
}
