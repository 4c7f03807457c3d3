package org.kquota.admission;

/**
 * The law of admission: what may land, and whose turn it is, from one moment on until the next budget. Pure: time is passed in.
 *
 * <p>The allowed bytes grow by the target, and are counted like the bytes that have landed. Turns are those of weighted fair queueing: a clock that passes as
 * fast as the clients which want to produce can be served, b / w for a request of b bytes of a client of weight w. A client whose turn is before that clock is
 * admitted, as soon as there is room for half of its request and for those that wait with an earlier turn. The clock waits for the client that is furthest
 * behind, as long as that keeps asking, and stands while more has landed than may have. So sizes need not be known exactly, neither for the total, which
 * follows what has landed, nor for the order.
 *
 * @param atNanos        when it begins
 * @param allowedBytes   what may have landed until then
 * @param bytesPerSecond the target
 * @param factor         the factor by which it is less than what clients had before
 * @param turn           the clock of turns then
 * @param turnRate       how fast it passes
 * @param turnMax        how far it may pass
 * @param pace           how fast it would pass if sizes were known exactly
 * @param round          the most that one request may move a client's turn
 * @param newcomerWeight weight of each client that was not producing before, bytes per second
 * @param usualBytes     size of a request of which nothing is known, bytes
 * @param behind         the earliest turn of those that wait; positive infinity without any
 * @param waitingBytes   what those whose turn it is wait with, bytes
 */
record Budget(long atNanos, double allowedBytes, double bytesPerSecond, double factor, double turn, double turnRate, double turnMax, double pace,
              double round, double newcomerWeight, double usualBytes, double behind, double waitingBytes) {
    /** Allowed bytes that were not used for longer than this are lost: a client that was refused is back after its longest backoff, a second and a fifth. */
    static final double UNUSED_SECONDS = 2;
    /** The same for one client: its turns may be this old. */
    private static final double CREDIT_SECONDS = 3;
    /** The clock of turns passes twice as fast if bytes for this long are unused. */
    private static final double CORRECTED_SECONDS = 0.25;
    private static final double FASTEST = 3;
    /** Others may be served for this long while the client whose turn it is waits for its own next attempt. */
    private static final double AWAITED_SECONDS = 1;
    /** And longer where bytes are unused meanwhile, by this many times as long as they are for. */
    private static final double AWAITED_LESS = 2;
    /** No more is kept for those that wait than for this long: it stays unused. */
    private static final double KEPT_SECONDS = 0.3;
    /** A client has a turn in each round of this length, however small its share. */
    private static final double ROUND_SECONDS = 2;
    private static final double ROUNDS = 2;

    /** The first budget: from now on the target counts. */
    static Budget begin(Target target, Demand demand, double landedBytes, double turn, long nanos) {
        return of(target, demand, landedBytes, landedBytes, turn, nanos);
    }

    /** The next budget, with what has landed until now. */
    Budget next(Target target, Demand demand, double landedBytes, long nanos) {
        double allowed = allowed(nanos) + target.exemptRate() * seconds(nanos);
        return of(target, demand, allowed, landedBytes, turn(nanos), nanos);
    }

    private static Budget of(Target target, Demand demand, double allowed, double landed, double turn, long nanos) {
        boolean withNewcomers = demand.newcomers() > 0;
        double unthrottled = target.unthrottled(withNewcomers);
        double newcomersWeight = withNewcomers ? Math.max(target.newcomersMinRatio() * unthrottled, unthrottled - demand.knownWeight()) : 0;
        double weights = demand.knownWeight() + newcomersWeight;
        double pace = weights > 0 ? target.factor() * unthrottled / weights : target.factor();
        double bytesPerSecond = Math.max(1, target.factor() * unthrottled * target.landedRatio());
        double kept = Math.min(demand.waitingBytes(), KEPT_SECONDS * bytesPerSecond);
        double capped = Math.min(allowed, landed + UNUSED_SECONDS * bytesPerSecond + kept + demand.largestBytes());
        double unusedSeconds = (capped - landed - kept) / bytesPerSecond;
        double correction = 1 + unusedSeconds / CORRECTED_SECONDS;
        double awaitedSeconds = AWAITED_SECONDS + AWAITED_LESS * Math.max(0, unusedSeconds);
        double roundSeconds = Math.max(ROUND_SECONDS, ROUNDS * demand.roundBytes() / bytesPerSecond);
        return new Budget(nanos, capped, bytesPerSecond, target.factor(), turn, pace * Math.min(Math.max(correction, 0), FASTEST),
            Math.max(turn, demand.furthestBehind() + awaitedSeconds * pace), pace, roundSeconds * pace,
            withNewcomers ? newcomersWeight / demand.newcomers() : Math.max(1, target.newcomersMinRatio() * unthrottled), demand.usualRequestBytes(),
            demand.furthestBehind(), kept);
    }

    private double seconds(long nanos) {
        return Math.max(0, (nanos - atNanos) / 1e9);
    }

    /** Bytes that may have landed at that moment. */
    double allowed(long nanos) {
        return allowedBytes + bytesPerSecond * seconds(nanos);
    }

    /** The clock of turns at that moment. */
    double turn(long nanos) {
        return Math.min(turn + turnRate * seconds(nanos), turnMax);
    }

    /** From one turn to the next of a client whose requests have this many bytes, seconds. */
    double secondsBetweenTurns(double bytes, double weight) {
        return cost(bytes, weight) / pace;
    }

    /** By how much one request moves the turn of its client. */
    double cost(double bytes, double weight) {
        return Math.min(bytes / weight, round);
    }

    /** The earliest turn that a client can have at that turn of the clock. */
    double earliest(double turnNow) {
        return turnNow - CREDIT_SECONDS * pace;
    }

    /** The latest turn to which bytes that were not expected move a client: on a busy broker they may be those of requests from before. */
    double latest(double turnNow) {
        return turnNow + round;
    }

    /** Bytes that are kept for those that wait with an earlier turn than this one: they are about evenly spread up to the clock. */
    double kept(double due, double turnNow) {
        return due <= behind ? 0 : waitingBytes * (due - behind) / (turnNow - behind);
    }

    /** Whether there is room for a request: half of it, so that the total is off by half of one either way. */
    static boolean hasRoom(double room, double bytes) {
        return room >= bytes / 2;
    }
}
