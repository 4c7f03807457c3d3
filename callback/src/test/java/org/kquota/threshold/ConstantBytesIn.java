package org.kquota.threshold;

/**
 * Rates that do not change.
 *
 * @param total bytes in per second of all topics
 * @param each  of each topic
 */
public record ConstantBytesIn(double total, double each) implements BytesIn {
    @Override
    public double of(String topic) {
        return each;
    }
}
