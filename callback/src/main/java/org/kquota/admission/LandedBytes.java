package org.kquota.admission;

/** The broker's own counter of what clients' produce requests have appended. */
@FunctionalInterface
public interface LandedBytes {
    /** Bytes since the broker started. Asked on request threads; never waits. */
    long bytes();
}
