package org.kquota.applied;

import org.kquota.quota.TagSet;

import java.util.List;

/** The topics that clients wrote to in the last minute, for one report after the other; each is bounded, whatever the topics are called. */
final class NotedTopics {
    /** Of topics are reported those of the last minute, so that the fence has to have noted them for that long. */
    private static final int NOTED_SECONDS = 60;
    /** The most characters of names in a report. */
    private static final int MAX_LENGTH = 65_536;

    private int nowSeconds;
    private int sinceSeconds = Integer.MAX_VALUE;
    private int length;

    /** Begins a report; the fence notes topics now, or does not. */
    void begin(boolean isNoting, int seconds) {
        nowSeconds = seconds;
        sinceSeconds = isNoting ? Math.min(sinceSeconds, seconds) : Integer.MAX_VALUE;
        length = 0;
    }

    /** The topics of these clients, or null where not all of them are known, or the names of others have taken up the room. */
    List<String> of(TagSet tagSet) {
        List<String> topics = tagSet == null || nowSeconds - NOTED_SECONDS < sinceSeconds ? null : tagSet.topics(nowSeconds);
        int more = topics == null ? 0 : topics.stream().mapToInt(String::length).sum();
        if (more == 0 || length + more > MAX_LENGTH) {
            return null;
        }
        length += more;
        return topics;
    }
}
