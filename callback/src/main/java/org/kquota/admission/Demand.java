package org.kquota.admission;

/**
 * The clients that want to produce now.
 *
 * @param knownWeight      weights of those that were producing before, together, bytes per second
 * @param newcomers        how many others there are
 * @param roundBytes       one request of each of them, bytes
 * @param largestBytes     the largest of these requests, bytes
 * @param clients          how many they are
 * @param furthestBehind   the earliest turn of those that were refused; positive infinity without any
 * @param waitingBytes     one request of each of those that were refused although it was their turn, bytes
 */
record Demand(double knownWeight, int newcomers, double roundBytes, double largestBytes, int clients, double furthestBehind, double waitingBytes) {
    static final Demand NONE = new Demand(0, 0, 0, 0, 0, Double.POSITIVE_INFINITY, 0);
    /** Kafka's default batch.size, for a client of which nothing is known. */
    private static final double REQUEST_BYTES = 16_384;

    double usualRequestBytes() {
        return clients > 0 && roundBytes > 0 ? roundBytes / clients : REQUEST_BYTES;
    }
}
