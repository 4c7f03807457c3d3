package org.kquota.govern;

import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.kquota.decision.State;
import org.kquota.quota.StockQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;
import org.kquota.quota.Tags;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;

/** A governor whose clients and steps a test chooses, for {@link GovernorStepsTest} and {@link GovernorAdmissionTest}. */
abstract class SteppedGovernor {
    /** A window of 10 s; mutes of 10 s at most; 1,000 bytes in each of them for a pool. */
    static final GovernorSettings SETTINGS = new GovernorSettings(10, 10, 1_000, 10, 1_000, 0.05);
    static final double LOOK_SECONDS = 0.1;

    final StockQuotas quotas = new StockQuotas(StockQuotas.LevelMemory.COUNTED);
    final TagSets tagSets = new TagSets(quotas, 1_000);
    final Map<Map<String, String>, Double> rates = new HashMap<>();
    final TagSet paused = new TagSet(Tags.PAUSED);
    final TagSet newcomers = new TagSet(Tags.NEWCOMERS);
    final Governor governor = new Governor(SETTINGS, quotas, tagSets, paused, newcomers,
        tags -> OptionalDouble.of(rates.getOrDefault(tags, 0.0)));
    boolean fenced;

    record Part(ClientQuotaEntity.ConfigEntityType entityType, String name) implements ClientQuotaEntity.ConfigEntity {
    }

    void quota(String clientId, double bytesPerSecond) {
        quotas.update(() -> List.of(new Part(ClientQuotaEntity.ConfigEntityType.CLIENT_ID, clientId)), bytesPerSecond);
    }

    TagSet client(String clientId, double bytesPerSecond) {
        TagSet tagSet = tagSets.of("alice", clientId);
        rates.put(tagSet.tags(), bytesPerSecond);
        return tagSet;
    }

    /** Each of these clients sends one request between two looks. Returns in how many steps a limit changed. */
    int steps(double seconds, State state, double factor, TagSet... sending) {
        int changes = 0;
        for (int step = 0; step < Math.round(seconds / LOOK_SECONDS); step++) {
            for (TagSet tagSet : sending) {
                tagSet.touch(0);
            }
            changes += governor.step(state, factor, fenced, LOOK_SECONDS) ? 1 : 0;
        }
        return changes;
    }
}
