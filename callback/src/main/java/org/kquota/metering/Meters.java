package org.kquota.metering;

import java.util.Arrays;
import java.util.stream.Stream;

/**
 * The meters of all tag sets, in an array in which a look passes over a part, those whose turn it is. The figures summed over all
 * of them in each look lie apart: ten thousand numbers side by side are read in no time, ten thousand objects are not.
 * Used by one thread.
 */
public final class Meters {
    private static final int FIRST_LENGTH = 64;

    private Meter[] meters = new Meter[FIRST_LENGTH];
    private double[] observed = new double[FIRST_LENGTH];
    private double[] baselines = new double[FIRST_LENGTH];
    private int size;
    private int next;

    void add(Meter meter) {
        if (size == meters.length) {
            meters = Arrays.copyOf(meters, 2 * size);
            observed = Arrays.copyOf(observed, 2 * size);
            baselines = Arrays.copyOf(baselines, 2 * size);
        }
        put(size++, meter);
    }

    private void put(int place, Meter meter) {
        meters[place] = meter;
        meter.place(place);
        keep(meter);
    }

    /** Takes over the figures for the sums. To be called whenever a meter has seen or learnt something. */
    public void keep(Meter meter) {
        observed[meter.place()] = meter.observed();
        baselines[meter.place()] = meter.baseline();
    }

    public int size() {
        return size;
    }

    /** How many are passed over in a look, if all are to be in this many looks. */
    int turn(int looks) {
        return (size + looks - 1) / looks;
    }

    /** The next one whose turn it is. Those of forgotten tag sets are dropped on the way. */
    Meter next() {
        if (next >= size) {
            next = 0;
        }
        while (next < size && meters[next].tagSet().forgotten()) {
            Meter last = meters[--size];
            meters[size] = null;
            if (next < size) {
                put(next, last);
            }
        }
        return next < size ? meters[next++] : null;
    }

    public Stream<Meter> stream() {
        return Arrays.stream(meters, 0, size);
    }

    /** Their observed rates together, each at its last look, bytes per second. */
    public double observed() {
        return sum(observed);
    }

    /** Their baselines together, bytes per second. */
    public double baselines() {
        return sum(baselines);
    }

    private double sum(double[] figures) {
        double sum = 0;
        for (int i = 0; i < size; i++) {
            sum += figures[i];
        }
        return sum;
    }
}
