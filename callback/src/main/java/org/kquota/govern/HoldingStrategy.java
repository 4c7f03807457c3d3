package org.kquota.govern;

/** How producers are held in one state. It is entered, steps until another state is entered, and is left. Used by the governor's thread. */
interface HoldingStrategy {
    /** The state begins; no client is held alone yet. */
    void enter();

    /**
     * Sets the limits, after a look.
     *
     * @param factor  the throttle factor in [0, 1]
     * @param fenced  whether something else keeps requests from being appended
     * @param seconds time since the last step
     * @return D of the pool in force, seconds, or null without one
     */
    Double step(double factor, boolean fenced, double seconds);

    /** Another state begins. */
    default void leave() {
    }

    /** A tag set is new, and is looked at from now on. */
    default void added(Meter meter) {
    }

    /** It is the turn of a meter whose rate decides on no limit; what it saw last is still there. */
    default void beforeTurn(Meter meter) {
    }

    /** Returns the number of looks until each of this many meters has had its turn. */
    int looksOfAll(int meters);

    /** Whether requests are metered by the tags of clients that are not held alone. */
    boolean metersByOwnTags();

    /** How long what arrives between two looks is remembered. */
    double arrivalsRememberedSeconds();
}
