package org.kquota.decision;

import java.util.Locale;

/** Which producers a decision is about. */
public enum Scope {
    /** All of them alike. */
    CLUSTER,
    /** Those that write to topics at stake, by the factor of each. */
    TOPICS;

    /** The spelling in files. */
    public String text() {
        return name().toLowerCase(Locale.ROOT);
    }
}
