package org.kquota.govern;

import org.kquota.quota.TagSet;

/** Writes limits into tag sets where they have moved enough, and knows whether any has. Used by one thread. */
final class Limits {
    private boolean changed;

    void set(TagSet tagSet, double limit, double changeMinRatio) {
        if (GovernorLaw.hasMoved(tagSet.limit(), limit, changeMinRatio)) {
            tagSet.limit(limit);
            changed = true;
        }
    }

    /** Which limits are in force is another matter now, whether or not one has moved. */
    void change() {
        changed = true;
    }

    /** Whether a limit that is in force has changed since the last call. */
    boolean takeChanged() {
        boolean taken = changed;
        changed = false;
        return taken;
    }
}
