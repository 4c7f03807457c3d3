package org.kquota.quota;

/**
 * An entry of the list of exempt principals: a Type:name, or a pattern of them, in which one <code>*</code> stands for any characters within one
 * attribute value of a distinguished name (RFC 2253). The run of characters has none that a distinguished name separates or escapes by, so that it ends
 * where the value ends, whatever names an authority lets its clients choose.
 *
 * @param before what a principal begins with; all of it if <code>after</code> is null
 * @param after  what it ends with; null if the entry is no pattern
 */
record ExemptEntry(String before, String after) {
    private static final String SEPARATORS_AND_ESCAPES = ",=+\\\"<>;";
    static final String ALLOWED = "allowed is a list of principals as Type:name, separated by semicolons, for example User:CN=agent,O=x;User:admin; one * "
        + "in an attribute value of a distinguished name, after at least one character of the value, as in User:CN=agent-*,O=x, stands for any characters but "
        + SEPARATORS_AND_ESCAPES + "; \\* is a literal *";

    /** @throws IllegalArgumentException if it has no type or no name, or a <code>*</code> where it must not be */
    static ExemptEntry parse(String entry) {
        int colon = entry.indexOf(':');
        if (colon <= 0 || colon == entry.length() - 1) {
            throw refused(entry, "has no type or no name");
        }
        if (entry.lastIndexOf('*', colon) >= 0) {
            throw refused(entry, "has a * in the type");
        }
        String before = null;
        StringBuilder text = new StringBuilder(entry.substring(0, colon + 1));
        int attribute = text.length();
        int value = Integer.MAX_VALUE;
        for (int i = colon + 1; i < entry.length(); i++) {
            char next = entry.charAt(i);
            if (next == '*') {
                if (before != null) {
                    throw refused(entry, "has more than one *");
                }
                if (text.length() <= value) {
                    throw refused(entry, "has a * that follows no character of an attribute value, and would exempt too many");
                }
                before = text.toString();
                text.setLength(0);
                continue;
            }
            if (next == '\\' && i + 1 < entry.length()) {
                i++;
                if (entry.charAt(i) != '*') {
                    text.append(next);
                }
                next = entry.charAt(i);
            } else if (before == null) {
                if (next == ',' || next == '+') {
                    attribute = text.length() + 1;
                    value = Integer.MAX_VALUE;
                } else if (next == '=' && value == Integer.MAX_VALUE && text.length() > attribute) {
                    value = text.length() + 1;
                }
            }
            text.append(next);
        }
        return before == null ? new ExemptEntry(text.toString(), null) : new ExemptEntry(before, text.toString());
    }

    private static IllegalArgumentException refused(String entry, String why) {
        return new IllegalArgumentException("'" + entry + "' " + why + "; " + ALLOWED);
    }

    boolean isPattern() {
        return after != null;
    }

    /** Whether it is a pattern that this Type:name matches. */
    boolean matches(String principal) {
        int end = principal.length() - after.length();
        if (end < before.length() || !principal.startsWith(before) || !principal.endsWith(after)) {
            return false;
        }
        for (int i = before.length(); i < end; i++) {
            if (SEPARATORS_AND_ESCAPES.indexOf(principal.charAt(i)) >= 0) {
                return false;
            }
        }
        return true;
    }
}
