package org.kquota.quota;

import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;

import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The quotas of one type that were set with the standard tools, with the precedence and the metric tags of the
 * broker's built-in callback: the most specific of eight levels counts (KIP-13, KIP-257), and clients that share a
 * quota share its tags. Reads take no lock.
 */
public final class StockQuotas implements Quotas {
    private enum Level { CLIENT, USER, USER_CLIENT }

    /** How the built-in callback forgets levels, which differs between Kafka versions. */
    public enum LevelMemory {
        /** Up to Kafka 4.1 a level that was ever used stays in use until the broker restarts. */
        STICKY,
        /** From Kafka 4.2 on a level is in use while it has a quota. */
        COUNTED;

        private static final String CLASS_OF_BEFORE = "kafka.server.ClientQuotaManager";
        private static final String FIELD_OF_COUNTS = "activeQuotaEntities";

        /**
         * The memory of the broker in this JVM, by the class that has it there: vendors' versions have numbers of their own. Where that is
         * still the one in Scala, and it has no field of counts, it counts nothing.
         */
        public static LevelMemory of(ClassLoader broker) {
            try {
                boolean counts = Arrays.stream(Class.forName(CLASS_OF_BEFORE, false, broker).getDeclaredFields())
                    .anyMatch(field -> field.getName().endsWith(FIELD_OF_COUNTS));
                return counts ? COUNTED : STICKY;
            } catch (ClassNotFoundException e) {
                return COUNTED;
            }
        }
    }

    private final LevelMemory memory;
    private final Map<Entity, Double> quotas = new ConcurrentHashMap<>();
    private final EnumMap<Level, Integer> counts = new EnumMap<>(Level.class);
    private volatile int levels;
    private volatile Runnable whenChanged = () -> { };

    public StockQuotas(LevelMemory memory) {
        this.memory = memory;
    }

    /** Runs this after each change, before the thread that made the change goes on. */
    public void whenChanged(Runnable listener) {
        whenChanged = listener;
    }

    /** Sets the quota of an entity, in the unit of its type. */
    public void update(ClientQuotaEntity quotaEntity, double bound) {
        try {
            put(Entity.of(quotaEntity), bound);
        } finally {
            whenChanged.run();
        }
    }

    private synchronized void put(Entity entity, double bound) {
        if (quotas.put(entity, bound) == null) {
            counts.merge(entity.level(), 1, Integer::sum);
        }
        levels |= bit(entity.level());
    }

    /** Removes the quota of an entity; the next less specific one counts again. */
    public void remove(ClientQuotaEntity quotaEntity) {
        try {
            remove(Entity.of(quotaEntity));
        } finally {
            whenChanged.run();
        }
    }

    private synchronized void remove(Entity entity) {
        if (quotas.remove(entity) != null) {
            counts.merge(entity.level(), -1, Integer::sum);
        }
        if (memory == LevelMemory.STICKY) {
            // There, even the removal of a quota that was never set puts the level to use.
            levels |= bit(entity.level());
        } else if (counts.getOrDefault(entity.level(), 0) == 0) {
            levels &= ~bit(entity.level());
        }
    }

    @Override
    public Pair meteredAs(String sanitizedUser, String clientId) {
        int inUse = levels;
        if (inUse == 0 || inUse == bit(Level.CLIENT)) {
            return new Pair("", clientId);
        }
        if (inUse == bit(Level.USER)) {
            return new Pair(sanitizedUser, "");
        }
        if (inUse == bit(Level.USER_CLIENT)) {
            return new Pair(sanitizedUser, clientId);
        }
        Part user = Part.named(sanitizedUser);
        Part client = Part.named(clientId);
        if (has(user, client) || has(user, Part.DEFAULT)) {
            return new Pair(sanitizedUser, clientId);
        }
        if (has(user, null)) {
            return new Pair(sanitizedUser, "");
        }
        if (has(Part.DEFAULT, client) || has(Part.DEFAULT, Part.DEFAULT)) {
            return new Pair(sanitizedUser, clientId);
        }
        if (has(Part.DEFAULT, null)) {
            return new Pair(sanitizedUser, "");
        }
        return new Pair("", clientId);
    }

    /** Whether the most specific quota that this client has names its user or its client id. */
    public boolean names(String sanitizedUser, String clientId) {
        int inUse = levels;
        if (inUse == 0) {
            return false;
        }
        // A level that is not in use need not be looked at: this is asked for each request of a group's member.
        boolean ofUsersClients = (inUse & bit(Level.USER_CLIENT)) != 0;
        boolean ofUsers = (inUse & bit(Level.USER)) != 0;
        Part user = Part.named(sanitizedUser);
        Part client = Part.named(clientId);
        if (ofUsersClients && (has(user, client) || has(user, Part.DEFAULT))
            || ofUsers && has(user, null)
            || ofUsersClients && has(Part.DEFAULT, client)) {
            return true;
        }
        return (inUse & bit(Level.CLIENT)) != 0 && has(null, client)
            && !(ofUsersClients && has(Part.DEFAULT, Part.DEFAULT)) && !(ofUsers && has(Part.DEFAULT, null));
    }

    @Override
    public Double limit(String user, String clientId) {
        if (levels == 0) {
            return null;
        }
        if (!user.isEmpty() && !clientId.isEmpty()) {
            return first(
                new Entity(Part.named(user), Part.named(clientId)),
                new Entity(Part.named(user), Part.DEFAULT),
                new Entity(Part.DEFAULT, Part.named(clientId)),
                new Entity(Part.DEFAULT, Part.DEFAULT));
        }
        if (!user.isEmpty()) {
            return first(new Entity(Part.named(user), null), new Entity(Part.DEFAULT, null));
        }
        if (!clientId.isEmpty()) {
            return first(new Entity(null, Part.named(clientId)), new Entity(null, Part.DEFAULT));
        }
        return null;
    }

    private Double first(Entity... mostSpecificFirst) {
        for (Entity entity : mostSpecificFirst) {
            Double bound = quotas.get(entity);
            if (bound != null) {
                return bound;
            }
        }
        return null;
    }

    private boolean has(Part user, Part client) {
        return quotas.containsKey(new Entity(user, client));
    }

    private static int bit(Level level) {
        return 1 << level.ordinal();
    }

    /** A user, sanitized, and a client id. */
    public record Pair(String user, String clientId) {
    }

    /** A user or client id by name, or the default for all of them. */
    private record Part(boolean isDefault, String name) {
        static final Part DEFAULT = new Part(true, "");

        static Part named(String name) {
            return new Part(false, name);
        }
    }

    private record Entity(Part user, Part client) {
        static Entity of(ClientQuotaEntity quotaEntity) {
            Part user = null;
            Part client = null;
            for (ConfigEntity part : quotaEntity.configEntities()) {
                switch (part.entityType()) {
                    case USER -> user = Part.named(KafkaNames.sanitized(part.name()));
                    case CLIENT_ID -> client = Part.named(part.name());
                    case DEFAULT_USER -> user = Part.DEFAULT;
                    case DEFAULT_CLIENT_ID -> client = Part.DEFAULT;
                    default -> throw new IllegalArgumentException("unknown quota entity type " + part.entityType());
                }
            }
            if (user == null && client == null) {
                throw new IllegalArgumentException("a quota entity without user and client id");
            }
            return new Entity(user, client);
        }

        Level level() {
            if (user == null) {
                return Level.CLIENT;
            }
            return client == null ? Level.USER : Level.USER_CLIENT;
        }
    }
}
