package org.kquota.govern;

/**
 * What the governor reports.
 *
 * @param tagSets         produce tag sets it looks at
 * @param observedRate    what all held or holdable producers produce now, bytes per second
 * @param baselineRate    what they produced before OPEN was left, or lately while OPEN, bytes per second
 * @param poolObservedRate what the shared pool in force produces now (PAUSE: all clients, THROTTLE: newcomers), bytes per second
 * @param poolLimit       the limit of that pool, bytes per second, or null while there is none
 * @param muteSeconds     D of that pool, seconds, or null while there is none
 */
public record Figures(int tagSets, double observedRate, double baselineRate, double poolObservedRate, Double poolLimit,
                      Double muteSeconds) {
    public static final Figures NONE = new Figures(0, 0, 0, 0, null, null);
}
