package org.kquota.decision;

import java.util.HashMap;
import java.util.Map;

/**
 * The throttle factor of each topic, in [0, 1], by a decision whose scope is topics: 0 where nothing may be written to it, 1 where it is not held. A topic below 1
 * is at stake. Immutable; a request thread looks a topic up at the cost of one hash.
 */
public final class TopicFactors {
    /** @param factors these, where none is below that floor but 0 */
    private record Raised(double floor, TopicFactors factors) {
    }

    private final Map<String, Double> named;
    private final double others;
    private final int paused;
    private final int throttled;
    private final double slowest;
    private volatile Raised raised;

    /**
     * @param named  the factors of topics
     * @param others the factor of every other topic
     */
    public TopicFactors(Map<String, Double> named, double others) {
        this.named = Map.copyOf(named);
        this.others = others;
        int pausedTopics = 0;
        int throttledTopics = 0;
        double smallest = isThrottled(others) ? others : 1;
        for (double factor : named.values()) {
            pausedTopics += factor == 0 ? 1 : 0;
            throttledTopics += isThrottled(factor) ? 1 : 0;
            smallest = isThrottled(factor) ? Math.min(smallest, factor) : smallest;
        }
        this.paused = pausedTopics;
        this.throttled = throttledTopics;
        this.slowest = smallest;
    }

    private static boolean isThrottled(double factor) {
        return factor > 0 && factor < 1;
    }

    /** The factor of this topic. */
    public double of(String topic) {
        Double factor = named.get(topic);
        return factor == null ? others : factor;
    }

    /** The factors of the topics that the decision names; not to be changed. */
    public Map<String, Double> named() {
        return named;
    }

    /** Whether the decision names this topic. */
    public boolean names(String topic) {
        return named.containsKey(topic);
    }

    /** How many named topics nothing may be written to. */
    public int paused() {
        return paused;
    }

    /** How many named topics keep a part of their rate. */
    public int throttled() {
        return throttled;
    }

    /** The factor of every topic that is not named. */
    public double others() {
        return others;
    }

    /** The smallest factor above 0 and below 1, or 1 where no topic is throttled. */
    public double slowest() {
        return slowest;
    }

    /** The same, where no topic is throttled to less than that floor; the same object for the same floor, since what goes by it compares no factors. */
    TopicFactors withFloor(double floor) {
        if (slowest >= floor) {
            return this;
        }
        Raised last = raised;
        if (last == null || last.floor != floor) {
            Map<String, Double> higher = new HashMap<>(named);
            higher.replaceAll((topic, factor) -> EffectiveDecision.raised(factor, floor));
            last = new Raised(floor, new TopicFactors(higher, EffectiveDecision.raised(others, floor)));
            raised = last;
        }
        return last.factors;
    }

    /** Whether each topic is paused, throttled or not held there as here; how far it is throttled may differ. */
    public boolean sameStates(TopicFactors other) {
        return this == other || other != null && state(others) == state(other.others) && sameNamedStates(other) && other.sameNamedStates(this);
    }

    private boolean sameNamedStates(TopicFactors other) {
        return named.entrySet().stream().allMatch(entry -> state(entry.getValue()) == state(other.of(entry.getKey())));
    }

    private static State state(double factor) {
        return factor == 0 ? State.PAUSE : factor == 1 ? State.OPEN : State.THROTTLE;
    }

    /** "PAUSE for 37 topics, THROTTLE for 3 topics down to 20.0 %"; empty where no topic is at stake. */
    String sentence() {
        StringBuilder text = new StringBuilder();
        say(text, State.PAUSE, paused, others == 0);
        say(text, State.THROTTLE, throttled, isThrottled(others));
        return text.append(slowest < 1 ? String.format(java.util.Locale.ROOT, " down to %.1f %%", slowest * 100) : "").toString();
    }

    private static void say(StringBuilder text, State state, int topics, boolean andOthers) {
        if (topics == 0 && !andOthers) {
            return;
        }
        text.append(text.isEmpty() ? "" : ", ").append(state).append(" for ");
        text.append(topics == 0 ? "" : topics == 1 ? "1 topic" : topics + " topics").append(topics > 0 && andOthers ? " and " : "");
        text.append(!andOthers ? "" : "all that are not named");
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof TopicFactors factors && others == factors.others && named.equals(factors.named);
    }

    @Override
    public int hashCode() {
        return 31 * named.hashCode() + Double.hashCode(others);
    }

    @Override
    public String toString() {
        return named + ", others " + others;
    }
}
