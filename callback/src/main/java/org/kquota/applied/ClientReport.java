package org.kquota.applied;

import org.apache.kafka.server.quota.ClientQuotaType;
import org.kquota.accounting.ClientAccounts;
import org.kquota.decision.Scope;
import org.kquota.decision.State;
import org.kquota.group.Group;
import org.kquota.metering.NodeQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.Tags;
import org.kquota.share.LedPartitions;

import java.util.List;

/** The part of the applied-state file about clients, bounded whatever client ids they use. On the reporter's thread. */
final class ClientReport {
    private static final int MOST = 20;
    private static final int MOST_GROUPS = 200;
    private static final int MAX_LENGTH = 256;

    private final AppliedReport.Source source;
    private final ClientAccounts accounts;
    private final NotedTopics notedTopics = new NotedTopics();
    private long lastNanos = System.nanoTime();

    ClientReport(AppliedReport.Source source) {
        this.source = source;
        NodeQuotas quotas = source.quotas();
        this.accounts = new ClientAccounts(quotas.tagSets(ClientQuotaType.PRODUCE), List.of(quotas.paused(), quotas.newcomers()),
            quotas.tagSets(ClientQuotaType.FETCH), tags -> quotas.limit(ClientQuotaType.PRODUCE, tags),
            tags -> quotas.limit(ClientQuotaType.FETCH, tags));
    }

    /** Looks at the broker's metrics, and returns the figures of clients. */
    ClientFigures figures() {
        long nanos = System.nanoTime();
        accounts.look((nanos - lastNanos) / 1e9);
        lastNanos = nanos;
        notedTopics.begin(source.now().state() != State.OPEN && source.fence().reliable(), source.nowSeconds());
        return new ClientFigures(accounts.size(),
            accounts.top(MOST).stream().map(this::client).toList(),
            source.fence().refused().top(MOST).stream()
                .map(count -> new ClientFigures.Refused(count.principal(), count.clientId(), count.requests())).toList(),
            source.quotas().groups().all().stream().limit(MOST_GROUPS).map(this::group).toList());
    }

    private ClientFigures.Client client(ClientAccounts.Account account) {
        TagSet tagSet = source.quotas().tagSets(ClientQuotaType.PRODUCE).find(account.user(), account.clientId());
        return new ClientFigures.Client(cut(account.user()), cut(account.clientId()), Math.round(account.producedBytes()), Math.round(account.fetchedBytes()),
            account.heldSeconds(), account.produceRate(), account.produceThrottleMs(), account.produceLimit(), account.fetchRate(), account.fetchThrottleMs(),
            account.fetchLimit(), factor(tagSet), notedTopics.of(tagSet));
    }

    private Double factor(TagSet tagSet) {
        double factor = tagSet == null || source.now().scope() != Scope.TOPICS ? 1 : tagSet.factor(source.nowSeconds());
        return factor < 1 ? factor : null;
    }

    private ClientFigures.Group group(Group group) {
        LedPartitions.Count partitions = group.partitions();
        ClientAccounts.Account account = accounts.of(Tags.of(group.meteredAs().user(), group.meteredAs().clientId()));
        return new ClientFigures.Group(group.name(), group.limit(ClientQuotaType.PRODUCE), group.limit(ClientQuotaType.FETCH),
            group.limit(ClientQuotaType.REQUEST), partitions == null ? null : (Integer) partitions.all(),
            partitions == null ? null : (Integer) partitions.led(), Math.round(account.producedBytes()), Math.round(account.fetchedBytes()),
            account.heldSeconds(), account.produceRate(), account.produceThrottleMs(), account.fetchRate(), account.fetchThrottleMs(), group.refusals());
    }

    private static String cut(String text) {
        return text.length() <= MAX_LENGTH ? text : text.substring(0, MAX_LENGTH);
    }
}
