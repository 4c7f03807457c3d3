package org.kquota.decision;

import java.util.Locale;

/** Whether a decision is only computed and reported, or also enforced. */
public enum Mode {
    /** Everything is computed and reported, no producer is held. */
    OBSERVE,
    /** Producers are held. */
    ENFORCE;

    /** The spelling in files and properties. */
    public String text() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** The mode of that spelling, or null if there is none. */
    public static Mode of(String text) {
        for (Mode mode : values()) {
            if (mode.text().equals(text)) {
                return mode;
            }
        }
        return null;
    }
}
