package org.kquota.govern;

import java.util.ArrayDeque;
import java.util.Deque;

/** The largest value of the last seconds. */
final class RecentMaximum {
    /** From the largest to the latest: a value that is followed by a larger one can never be the maximum again. */
    private final Deque<Value> candidates = new ArrayDeque<>();
    private double nowSeconds;

    /**
     * Takes in a value and forgets old ones.
     *
     * @param value       the value of the time since the last one
     * @param seconds     how long that was
     * @param keptSeconds how old a value may become
     */
    void add(double value, double seconds, double keptSeconds) {
        nowSeconds += seconds;
        while (!candidates.isEmpty() && candidates.peekLast().amount <= value) {
            candidates.removeLast();
        }
        candidates.addLast(new Value(value, nowSeconds));
        while (candidates.peekFirst().atSeconds < nowSeconds - keptSeconds) {
            candidates.removeFirst();
        }
    }

    /** Forgets all values but this one, as if it were the latest. */
    void restart(double value) {
        candidates.clear();
        candidates.addLast(new Value(value, nowSeconds));
    }

    /** The maximum, or 0 while there is no value. */
    double get() {
        return candidates.isEmpty() ? 0 : candidates.peekFirst().amount;
    }

    private record Value(double amount, double atSeconds) {
    }
}
