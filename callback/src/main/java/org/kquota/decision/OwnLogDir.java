package org.kquota.decision;

/**
 * A log dir of this broker, and the bytes available there at which its volume changes its state.
 *
 * @param path               the directory
 * @param softAvailableBytes from this many bytes available on, OPEN
 * @param hardAvailableBytes up to this many bytes available, PAUSE; -1 for never
 */
public record OwnLogDir(String path, long softAvailableBytes, long hardAvailableBytes) {
    /** The headroom with this many bytes available, in [0, 1]: 1 is OPEN, 0 is PAUSE. */
    public double headroom(long availableBytes) {
        if (availableBytes <= hardAvailableBytes) {
            return 0;
        }
        double of = (double) softAvailableBytes - hardAvailableBytes;
        // The first byte beyond the hard limit is no PAUSE any more, whatever rounding makes of it.
        return Math.max(Double.MIN_NORMAL, Math.min(1, (availableBytes - hardAvailableBytes) / of));
    }
}
