package org.kquota.group;

import java.util.ArrayList;
import java.util.List;

/** Puts groups together and refuses members that two of them claim. */
public final class GroupsBuilder {
    private final List<Group> groups = new ArrayList<>();
    private final Members principals = new Members();
    private final Members clientIds = new Members();

    /** One more group, after those before it. */
    public void add(Group group) {
        groups.add(group);
    }

    /**
     * A member by its principal.
     *
     * @param entry exact Type:name, or a prefix, or a pattern of it
     * @throws IllegalArgumentException if it is none of these, or another group has the same entry; the message names what is allowed
     */
    public void addPrincipal(String entry, Group group) {
        if (!entry.startsWith("~") && entry.indexOf(':') <= 0) {
            throw new IllegalArgumentException("'" + entry + "' has no type; allowed is Type:name, for example User:" + entry);
        }
        refuse(entry, principals.add(entry, group), group);
    }

    /**
     * A member by its client id.
     *
     * @param entry exact client id, or a prefix, or a pattern of it
     * @throws IllegalArgumentException if it is none of these, or another group has the same entry; the message names what is allowed
     */
    public void addClientId(String entry, Group group) {
        refuse(entry, clientIds.add(entry, group), group);
    }

    private static void refuse(String entry, Group other, Group group) {
        if (other != null) {
            throw new IllegalArgumentException("'" + entry + "' is " + (other == group ? "there twice" : "in group " + other.name() + ", too")
                + "; allowed is each member once");
        }
    }

    public Groups build() {
        return new Groups(groups, principals, clientIds);
    }
}
