package org.kquota.group;

import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;

import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

/**
 * Which group a name belongs to, a principal's or a client id: the exact name counts before a prefix, a longer prefix before a shorter one, a
 * prefix before a pattern, and among patterns the first. So a name is in one group at most. Patterns are matched in time linear
 * to the name (RE2), because clients choose their names.
 */
final class Members {
    static final String ALLOWED =
        "allowed is a list, separated by semicolons, of exact names, prefixes that end in * (etl-*), and patterns that begin with ~ (~app[0-9]+)";

    private final Map<String, Group> exact = new HashMap<>();
    private final TreeMap<String, Group> prefixes =
        new TreeMap<>(Comparator.comparingInt(String::length).reversed().thenComparing(Comparator.naturalOrder()));
    private final Map<String, Pattern> compiled = new LinkedHashMap<>();
    private final Map<String, Group> patterns = new HashMap<>();

    /**
     * Adds an entry of a list.
     *
     * @return the group that has this very entry already, or null if it was added
     * @throws IllegalArgumentException if the entry is empty or its pattern is none
     */
    Group add(String entry, Group group) {
        if (entry.equals("*") || entry.equals("~")) {
            throw new IllegalArgumentException("'" + entry + "' names no member; " + ALLOWED);
        }
        if (entry.startsWith("~")) {
            try {
                compiled.putIfAbsent(entry, Pattern.compile(entry.substring(1)));
            } catch (PatternSyntaxException e) {
                throw new IllegalArgumentException("'" + entry + "' is no pattern: " + e.getMessage() + "; " + ALLOWED);
            }
            return patterns.putIfAbsent(entry, group);
        }
        if (entry.endsWith("*")) {
            return prefixes.putIfAbsent(entry.substring(0, entry.length() - 1), group);
        }
        return exact.putIfAbsent(entry, group);
    }

    /** The group of a name, or null. */
    Group of(String name) {
        Group group = exact.get(name);
        if (group != null) {
            return group;
        }
        for (Map.Entry<String, Group> prefix : prefixes.entrySet()) {
            if (name.startsWith(prefix.getKey())) {
                return prefix.getValue();
            }
        }
        for (Map.Entry<String, Pattern> pattern : compiled.entrySet()) {
            if (pattern.getValue().matches(name)) {
                return patterns.get(pattern.getKey());
            }
        }
        return null;
    }

    boolean isEmpty() {
        return exact.isEmpty() && prefixes.isEmpty() && compiled.isEmpty();
    }
}
