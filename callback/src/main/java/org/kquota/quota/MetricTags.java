package org.kquota.quota;

import java.util.AbstractCollection;
import java.util.AbstractMap;
import java.util.AbstractSet;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Set;

/**
 * The two metric tags of a quota, in their order. Kafka asks each request's tags for their values, twice: a map that is no
 * more than two fields costs less to make again than to fetch one of 10,000 from memory.
 */
final class MetricTags extends AbstractMap<String, String> {
    private final String user;
    private final String clientId;

    MetricTags(String user, String clientId) {
        this.user = user;
        this.clientId = clientId;
    }

    @Override
    public String get(Object key) {
        return Tags.USER.equals(key) ? user : Tags.CLIENT_ID.equals(key) ? clientId : null;
    }

    @Override
    public boolean containsKey(Object key) {
        return get(key) != null;
    }

    @Override
    public int size() {
        return 2;
    }

    @Override
    public Collection<String> values() {
        return new Values(user, clientId);
    }

    /** Simple enough to be no object at all in a method that is compiled. */
    private static final class Values extends AbstractCollection<String> {
        private final String first;
        private final String second;

        Values(String first, String second) {
            this.first = first;
            this.second = second;
        }

        @Override
        public int size() {
            return 2;
        }

        @Override
        public Iterator<String> iterator() {
            return new Iterator<>() {
                private int passed;

                @Override
                public boolean hasNext() {
                    return passed < 2;
                }

                @Override
                public String next() {
                    if (passed == 2) {
                        throw new NoSuchElementException();
                    }
                    return passed++ == 0 ? first : second;
                }
            };
        }
    }

    @Override
    public Set<Entry<String, String>> entrySet() {
        List<Entry<String, String>> entries = List.of(Map.entry(Tags.USER, user), Map.entry(Tags.CLIENT_ID, clientId));
        return new AbstractSet<>() {
            @Override
            public Iterator<Entry<String, String>> iterator() {
                return entries.iterator();
            }

            @Override
            public int size() {
                return entries.size();
            }
        };
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof MetricTags tags ? user.equals(tags.user) && clientId.equals(tags.clientId) : super.equals(other);
    }

    @Override
    public int hashCode() {
        return (Tags.USER.hashCode() ^ user.hashCode()) + (Tags.CLIENT_ID.hashCode() ^ clientId.hashCode());
    }
}
