package org.kquota.quota;

import java.util.Map;

/**
 * The broker's own quota class for one quota type, on a clock of the test. Its entities are named by the user and the
 * client id; "<default>" is the default entity, null is no entity.
 */
public interface BrokerQuotas extends AutoCloseable {
    String DEFAULT = "<default>";

    /** Sets a quota, or removes it where bound is null, as the broker does when the metadata changes. */
    void update(String user, String clientId, Double bound);

    /** Appends this many bytes for a client now; returns the throttle time in milliseconds. */
    int record(String user, String clientId, double bytes);

    /** The tags of a client's sensor, creating it if need be. */
    Map<String, String> tags(String user, String clientId);

    /** The limit of a client. */
    double limit(String user, String clientId);

    @Override
    void close();
}
