package org.kquota.govern;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * The throttle factor of the last W seconds since OPEN was left. One history serves all tag sets, because each one's
 * target is the factor times a constant of its own.
 */
final class FactorHistory {
    private final double windowSeconds;
    private final Deque<Piece> pieces = new ArrayDeque<>();
    private double coveredSeconds;
    private double weightedFactor;

    FactorHistory(double windowSeconds) {
        this.windowSeconds = windowSeconds;
    }

    /** OPEN: nothing to remember. */
    void clear() {
        pieces.clear();
        coveredSeconds = 0;
        weightedFactor = 0;
    }

    /** This factor held for this long, until now. */
    void add(double factor, double seconds) {
        pieces.addLast(new Piece(factor, seconds));
        double excess = covered() - windowSeconds;
        while (excess > 0) {
            Piece oldest = pieces.removeFirst();
            if (oldest.seconds > excess) {
                pieces.addFirst(new Piece(oldest.factor, oldest.seconds - excess));
            }
            excess -= oldest.seconds;
        }
        // Every client that is held asks for these in each look.
        coveredSeconds = covered();
        weightedFactor = pieces.stream().mapToDouble(piece -> piece.factor * piece.seconds).sum() / windowSeconds;
    }

    /**
     * The share of the bytes produced before OPEN was left that is still in the window, in [0, 1].
     *
     * @param filledSeconds how much of the window it filled then
     */
    double shareBefore(double filledSeconds) {
        return filledSeconds <= 0 ? 0 : Math.min(1, Math.max(0, (windowSeconds - coveredSeconds) / filledSeconds));
    }

    /** The factor's integral since OPEN was left, divided by the whole window. */
    double weightedFactor() {
        return weightedFactor;
    }

    private double covered() {
        return pieces.stream().mapToDouble(Piece::seconds).sum();
    }

    private record Piece(double factor, double seconds) {
    }
}
