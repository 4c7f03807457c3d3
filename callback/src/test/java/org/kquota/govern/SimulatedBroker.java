package org.kquota.govern;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.apache.kafka.server.quota.QuotaType;
import org.kquota.decision.State;
import org.kquota.quota.BrokerQuotas;
import org.kquota.quota.BrokerQuotasOfThisKafka;
import org.kquota.quota.ManualTime;
import org.kquota.quota.StockQuotas;
import org.kquota.quota.TagSet;
import org.kquota.quota.TagSets;
import org.kquota.quota.Tags;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Random;

/** The governor on Kafka's own quota class and metrics, with connections that send when they are not muted. */
final class SimulatedBroker implements AutoCloseable {
    private static final long STEP_MS = 10;
    private static final long LOOK_MS = 100;

    /** A connection that wants to send at a rate, in requests of one size. */
    static final class Connection {
        private final String clientId;
        private final double bytesPerSecond;
        private final double requestBytes;
        private final double largestRequestBytes;
        private final double bufferBytes;
        private double owed;
        /** It has the processor for {@link #turnMs} of each {@link #turnsMs}. */
        private long turnsMs = 1;
        private long turnMs = 1;
        private long turnAtMs;
        private long mutedUntilMs;
        double landed;
        double longestMuteSeconds;

        Connection(String clientId, double bytesPerSecond, double requestBytes, double largestRequestBytes, double bufferBytes) {
            this.clientId = clientId;
            this.bytesPerSecond = bytesPerSecond;
            this.requestBytes = requestBytes;
            this.largestRequestBytes = largestRequestBytes;
            this.bufferBytes = bufferBytes;
        }
    }

    private final ManualTime time = new ManualTime();
    private final Metrics metrics = new Metrics(time);
    private final long beganMs = time.milliseconds();
    private final StockQuotas stock = new StockQuotas(StockQuotas.LevelMemory.COUNTED);
    private final TagSets tagSets;
    private final BrokerQuotas quotas;
    private final Random random = new Random(1);
    private final TagSet paused = new TagSet(Tags.PAUSED);
    private final TagSet newcomers = new TagSet(Tags.NEWCOMERS);
    private final List<Connection> connections = new ArrayList<>();
    private final Governor governor;
    private State state = State.OPEN;
    private double factor = 1;
    private boolean reset;
    private boolean fenced;
    private boolean fenceKeepsOut;
    private long lastLookMs;
    private long nextLookMs;

    SimulatedBroker(GovernorSettings settings) {
        this(settings, 2000);
    }

    /** @param maxTagSets the number of clients without a quota that are kept apart */
    SimulatedBroker(GovernorSettings settings, int maxTagSets) {
        tagSets = new TagSets(stock, maxTagSets);
        governor = new Governor(settings, stock, tagSets, paused, newcomers, this::rate);
        quotas = new BrokerQuotasOfThisKafka(QuotaType.PRODUCE, metrics, time, (int) settings.windowSeconds(), new Callback());
    }

    Connection connect(String clientId, double bytesPerSecond, double requestBytes) {
        return add(new Connection(clientId, bytesPerSecond, requestBytes, requestBytes, Math.max(requestBytes, bytesPerSecond / 10)));
    }

    /** A client whose requests grow while it waits, up to that size, with a buffer of 32 MB, as real ones have. */
    Connection connectGrowing(String clientId, double bytesPerSecond, double requestBytes, double largestRequestBytes) {
        return add(new Connection(clientId, bytesPerSecond, requestBytes, largestRequestBytes, 32e6));
    }

    /** A client that has to wait for the processor: what it produces comes in bursts, each of several requests. */
    Connection connectInTurns(String clientId, double bytesPerSecond, double requestBytes, long turnAtMs, long turnMs, long turnsMs) {
        Connection connection = connectGrowing(clientId, bytesPerSecond, requestBytes, requestBytes);
        connection.turnAtMs = turnAtMs;
        connection.turnMs = turnMs;
        connection.turnsMs = turnsMs;
        return connection;
    }

    private Connection add(Connection connection) {
        // Real clients do not beat in time.
        connection.owed = random.nextDouble() * connection.requestBytes;
        connections.add(connection);
        return connection;
    }

    void quota(String clientId, double bound) {
        quotas.update(null, clientId, bound);
    }

    void decide(State next, double nextFactor) {
        state = next;
        factor = nextFactor;
    }

    /**
     * Whether there is a fence, which the governor knows of.
     *
     * @param keepsOut whether it keeps requests out in PAUSE, as it should
     */
    void fenced(boolean there, boolean keepsOut) {
        fenced = there;
        fenceKeepsOut = keepsOut;
    }

    /** Lets time pass; the figures of the connections begin again. */
    void run(double seconds) {
        for (Connection connection : connections) {
            connection.landed = 0;
            connection.longestMuteSeconds = 0;
        }
        for (long ms = 0; ms < seconds * 1000; ms += STEP_MS) {
            long nowMs = time.milliseconds();
            if (nowMs >= nextLookMs) {
                reset |= governor.step(state, factor, fenced, Math.max(STEP_MS, nowMs - lastLookMs) / 1e3);
                lastLookMs = nowMs;
                nextLookMs = nowMs + LOOK_MS;
            }
            if (state != State.PAUSE || !fenceKeepsOut) {
                connections.forEach(this::send);
            }
            time.advance(STEP_MS);
        }
    }

    /** Time that has passed since the beginning. */
    double seconds() {
        return (time.milliseconds() - beganMs) / 1e3;
    }

    /** The governor does not look for this long, as on a machine that is busy with something else. */
    void looksLate(double seconds) {
        nextLookMs = time.milliseconds() + (long) (seconds * 1000);
    }

    /** Rate of all connections in the last run, bytes per second. */
    double rate(double seconds) {
        return connections.stream().mapToDouble(connection -> connection.landed).sum() / seconds;
    }

    double longestMuteSeconds() {
        return connections.stream().mapToDouble(connection -> connection.longestMuteSeconds).max().orElse(0);
    }

    private void send(Connection connection) {
        connection.owed = Math.min(connection.owed + connection.bytesPerSecond * STEP_MS / 1e3, connection.bufferBytes);
        boolean itsTurn = (time.milliseconds() - beganMs - connection.turnAtMs + connection.turnsMs) % connection.turnsMs < connection.turnMs;
        while (itsTurn && connection.owed >= connection.requestBytes && time.milliseconds() >= connection.mutedUntilMs) {
            double bytes = Math.min(connection.owed, connection.largestRequestBytes);
            connection.owed -= bytes;
            connection.landed += bytes;
            int mute = quotas.record("alice", connection.clientId, bytes);
            connection.mutedUntilMs = time.milliseconds() + mute;
            connection.longestMuteSeconds = Math.max(connection.longestMuteSeconds, mute / 1e3);
        }
    }

    private OptionalDouble rate(Map<String, String> tags) {
        KafkaMetric metric = metrics.metric(metrics.metricName("byte-rate", "Produce", "", tags));
        return metric == null ? OptionalDouble.empty() : OptionalDouble.of((Double) metric.metricValue());
    }

    @Override
    public void close() {
        quotas.close();
        metrics.close();
    }

    private final class Callback implements ClientQuotaCallback {
        @Override
        public Map<String, String> quotaMetricTags(ClientQuotaType type, KafkaPrincipal principal, String clientId) {
            if (state == State.PAUSE) {
                return use(paused);
            }
            TagSet tagSet = tagSets.of(principal.getName(), clientId);
            tagSet.touch((int) seconds());
            return state == State.THROTTLE && !tagSet.hasBaseline() && stock.limit(tagSet.tags()) == null ? use(newcomers) : tagSet.tags();
        }

        private Map<String, String> use(TagSet tagSet) {
            tagSet.touch((int) seconds());
            return tagSet.tags();
        }

        @Override
        public Double quotaLimit(ClientQuotaType type, Map<String, String> tags) {
            if (tags.equals(Tags.PAUSED)) {
                return paused.limit();
            }
            if (tags.equals(Tags.NEWCOMERS)) {
                return newcomers.limit();
            }
            Double quota = stock.limit(tags);
            TagSet tagSet = tagSets.find(tags.get(Tags.USER), tags.get(Tags.CLIENT_ID));
            double limit = tagSet == null ? TagSet.NO_LIMIT : tagSet.limit();
            return quota == null ? (Double) Math.min(limit, Long.MAX_VALUE) : (Double) Math.min(quota, limit);
        }

        @Override
        public boolean quotaResetRequired(ClientQuotaType type) {
            boolean required = reset;
            reset = false;
            return required;
        }

        @Override
        public void updateQuota(ClientQuotaType type, ClientQuotaEntity entity, double newValue) {
            stock.update(entity, newValue);
        }

        @Override
        public void removeQuota(ClientQuotaType type, ClientQuotaEntity entity) {
            stock.remove(entity);
        }

        @Override
        @SuppressWarnings("removal")
        public boolean updateClusterMetadata(Cluster cluster) {
            return false;
        }

        @Override
        public void configure(Map<String, ?> configs) {
        }

        @Override
        public void close() {
        }
    }
}
