package org.kquota.quota;

import org.kquota.quota.StockQuotas.Pair;

import java.util.Map;

/** The quotas of one type: which clients are metered together, and their limit. Asked on request threads; never waits. */
public interface Quotas {
    /** The user and client id under which this client is metered; one of them may be empty. */
    Pair meteredAs(String sanitizedUser, String clientId);

    /** The quota of the clients metered under this user and client id, in the unit of its type, or null if there is none. */
    Double limit(String user, String clientId);

    /** The quota of these tags, or null if there is none. */
    default Double limit(Map<String, String> tags) {
        String user = tags.get(Tags.USER);
        String clientId = tags.get(Tags.CLIENT_ID);
        return user == null || clientId == null ? null : limit(user, clientId);
    }
}
