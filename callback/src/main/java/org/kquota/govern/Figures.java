package org.kquota.govern;

/**
 * The governor's report.
 *
 * @param tagSets         produce tag sets it looks at
 * @param observedRate    total rate of all held or holdable producers now, bytes per second
 * @param baselineRate    their total rate before OPEN was left, or lately while OPEN, bytes per second
 * @param poolObservedRate rate of the shared pool in force now (PAUSE: all clients, THROTTLE: newcomers), bytes per second
 * @param poolLimit       the limit of that pool, bytes per second, or null while there is none
 * @param muteSeconds     D of that pool, seconds, or null while there is none
 */
public record Figures(int tagSets, double observedRate, double baselineRate, double poolObservedRate, Double poolLimit,
                      Double muteSeconds) {
    public static final Figures NONE = new Figures(0, 0, 0, 0, null, null);
}
