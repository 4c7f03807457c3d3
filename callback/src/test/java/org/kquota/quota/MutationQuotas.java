package org.kquota.quota;

/** The broker's own quota class for controller mutations, on a clock of the test. */
public interface MutationQuotas extends AutoCloseable {
    /** Sets the quota controller_mutation_rate of a user, in partitions per second, as the broker does when the metadata changes. */
    void update(String user, double bound);

    /** Asks for this many partitions to be created or deleted now: returns 0 if it is admitted, or the throttle time in milliseconds if it is rejected. */
    int mutate(String user, String clientId, int partitions);

    @Override
    void close();
}
