package org.kquota.config;

import static org.kquota.error.PluginLog.LOG;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.kquota.decision.Mode;
import org.kquota.error.Errors;
import org.kquota.group.Group;
import org.kquota.group.GroupProperties;
import org.kquota.quota.QuotaProperties;
import org.kquota.share.LedPartitions;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The broker properties that change while the broker runs, as <code>kafka-configs --entity-type brokers</code> sets them, for all brokers or for one. Kafka
 * asks on a request thread whether it may store them, and has every broker take them over on its metadata thread.
 *
 * <p>A request for a property that would not be in force is refused. One that is stored all the same, because another broker was asked or none was, must not keep
 * Kafka from taking over the rest: it is left out, logged and counted.
 */
public final class LiveProperties {
    /** How all of ours begin. */
    static final String PREFIX = "kquota.";
    /** Part of the name of the thread on which Kafka has stored properties taken over. */
    private static final String METADATA_THREAD = "metadata-loader";

    /** Misspelt properties of this many groups at most are looked for; each has thousands of them. */
    private static final int MOST_GROUPS = 20;

    private final Target target;
    private final Errors errors;
    private final KquotaConfig atStart;
    private LedPartitions partitions = LedPartitions.UNKNOWN;
    private volatile KquotaConfig inForce;
    private volatile Map<String, ?> stored;

    public LiveProperties(Target target, KquotaConfig atStart, Errors errors) {
        this.target = target;
        this.errors = errors;
        this.atStart = atStart;
        this.inForce = atStart;
        this.stored = ours(atStart.originals());
    }

    /** The part of the plug-in that uses the properties. */
    public interface Target {
        /** The mode in force. */
        Mode brokerMode();

        /** Goes by this mode from now on. */
        void brokerMode(Mode mode);

        /** Goes by these properties from now on, but for the mode; those that are read at the start only are as before. */
        void configure(KquotaConfig next);
    }

    /** All of them, as the node uses them. */
    public KquotaConfig inForce() {
        return inForce;
    }

    /** Takes over who leads what; returns whether the limit of a group is another one now. */
    public synchronized boolean update(LedPartitions now) {
        partitions = now;
        return inForce.groups().update(now);
    }

    /**
     * The properties of which Kafka has to ask. It does not ask of one that is not listed, so what resembles one is listed too: nothing else could
     * refuse a misspelt one.
     */
    public Set<String> keys() {
        Set<String> keys = new HashSet<>(inForce.names());
        keys.addAll(stored.keySet());
        keys.addAll(KquotaConfig.names(groupsIn(stored)));
        keys.addAll(Misspellings.of(PREFIX, KquotaConfig.DEFINITION.names()));
        inForce.groups().all().stream().map(Group::name).limit(MOST_GROUPS)
            .forEach(group -> keys.addAll(Misspellings.of(GroupProperties.prefix(group), GroupProperties.definition(group).names())));
        return keys;
    }

    @SuppressWarnings("unchecked")
    private static List<String> groupsIn(Map<String, ?> properties) {
        Object groups = properties.get(QuotaProperties.GROUPS);
        return groups == null ? List.of() : (List<String>) ConfigDef.parseType(QuotaProperties.GROUPS, groups, ConfigDef.Type.LIST);
    }

    /**
     * Whether all of these can be in force.
     *
     * @param properties all of the broker's, those that do not change included
     * @throws ConfigException if they cannot; names key, value and what is allowed
     */
    public void validate(Map<String, ?> properties) {
        if (Thread.currentThread().getName().contains(METADATA_THREAD)) {
            return;
        }
        KquotaConfig.modeOf(properties);
        Map<String, ?> asked = ours(properties);
        // The way out in an emergency stays open, whatever else is stored already.
        if (!changed(asked).equals(Set.of(KquotaConfig.MODE))) {
            parse(asked, true);
        }
    }

    /** Our properties, of which some are other ones now; unknown ones may have been stored before. */
    private Set<String> changed(Map<String, ?> asked) {
        Set<String> changed = new HashSet<>(inForce.names());
        changed.removeIf(name -> Objects.equals(asked.get(name), stored.get(name)));
        return changed;
    }

    /** Puts these in force, as a whole; where that is not allowed, those of before stay in force, except the mode. */
    public void take(Map<String, ?> properties) {
        Mode mode = mode(properties);
        if (mode == Mode.OBSERVE) {
            // First: no error below can keep a producer held.
            target.brokerMode(mode);
        }
        configure(ours(properties));
        target.brokerMode(mode);
    }

    private Mode mode(Map<String, ?> properties) {
        try {
            return KquotaConfig.modeOf(properties);
        } catch (ConfigException e) {
            leaveOut(e.getMessage());
            return target.brokerMode();
        }
    }

    private synchronized void configure(Map<String, ?> taken) {
        Map<String, ?> before = stored;
        stored = taken;
        Set<String> changed = new TreeSet<>(before.keySet());
        changed.addAll(taken.keySet());
        changed.removeIf(name -> name.equals(KquotaConfig.MODE) || Objects.equals(taken.get(name), before.get(name)));
        if (changed.isEmpty()) {
            return;
        }
        try {
            KquotaConfig next = parse(taken, false);
            next.groups().takeOver(inForce.groups(), partitions);
            target.configure(next);
            inForce = next;
            LOG.info("broker properties have changed: {}", changed);
            if (changed.contains(KquotaConfig.EXEMPT_PRINCIPALS)) {
                LOG.info("exempt are now {}", next.exemptPrincipals());
            }
        } catch (ConfigException e) {
            leaveOut(e.getMessage() + "; the properties of before stay in force");
        }
    }

    /**
     * The properties that would be in force with these of ours.
     *
     * @param strict whether one that there is not, or that is read at the start only, is an error; else it is left out
     * @throws ConfigException if the others are not allowed
     */
    private KquotaConfig parse(Map<String, ?> asked, boolean strict) {
        Map<String, Object> properties = new HashMap<>(atStart.originals());
        // server.properties may still have properties of groups that are no longer named: left out without a message.
        properties.keySet().removeIf(name -> name.startsWith(PREFIX) && !KquotaConfig.READ_AT_START.contains(name));
        List<String> groups = groupsIn(asked);
        Set<String> known = KquotaConfig.names(groups);
        new TreeMap<>(asked).forEach((name, value) -> {
            if (KquotaConfig.READ_AT_START.contains(name)) {
                String started = atStart.values().get(name).toString();
                if (!value.toString().strip().equals(started)) {
                    refuse(new ConfigException(name, value, "it is read when the broker starts: set it in server.properties and restart the broker; allowed "
                        + "until then is the value that it started with, " + started), strict);
                }
            } else if (known.contains(name)) {
                properties.put(name, value);
            } else if (!atStart.originals().containsKey(name)) {
                refuse(KquotaConfig.unknown(name, value, groups), strict);
            }
        });
        // It has a way of its own.
        properties.remove(KquotaConfig.MODE);
        return new KquotaConfig(properties);
    }

    private void refuse(ConfigException why, boolean strict) {
        if (strict) {
            throw why;
        }
        leaveOut(why.getMessage());
    }

    private void leaveOut(String why) {
        errors.count(Errors.Kind.PROPERTIES, why);
        LOG.error("a broker property that is stored is not in force: {}", why);
    }

    private static Map<String, ?> ours(Map<String, ?> properties) {
        Map<String, Object> ours = new HashMap<>(properties);
        ours.entrySet().removeIf(entry -> !entry.getKey().startsWith(PREFIX) || entry.getValue() == null);
        return ours;
    }
}
