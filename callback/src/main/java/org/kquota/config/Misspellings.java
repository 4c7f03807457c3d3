package org.kquota.config;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Names that one slip of the hand makes of others: a letter too few, too many, or another one, two that changed places, or a word left out. */
final class Misspellings {
    private static final String LETTERS = "abcdefghijklmnopqrstuvwxyz._-";

    private Misspellings() {
    }

    /** Those of these names, all of which begin with this prefix, and so do the others. Some hundred to a thousand for each. */
    static Set<String> of(String prefix, Iterable<String> names) {
        Set<String> misspelt = new HashSet<>();
        names.forEach(name -> add(misspelt, prefix, name));
        return misspelt;
    }

    private static void add(Set<String> misspelt, String prefix, String name) {
        for (int at = prefix.length(); at <= name.length(); at++) {
            String before = name.substring(0, at);
            String after = name.substring(at);
            for (char letter : LETTERS.toCharArray()) {
                misspelt.add(before + letter + after);
                if (!after.isEmpty()) {
                    misspelt.add(before + letter + after.substring(1));
                }
            }
            if (!after.isEmpty()) {
                misspelt.add(before + after.substring(1));
                misspelt.add(before + Character.toUpperCase(after.charAt(0)) + after.substring(1));
            }
            if (after.length() > 1) {
                misspelt.add(before + after.charAt(1) + after.charAt(0) + after.substring(2));
            }
        }
        List<String> words = List.of(name.substring(prefix.length()).split("\\."));
        for (int left = 0; left < words.size(); left++) {
            List<String> others = new ArrayList<>(words);
            others.remove(left);
            misspelt.add(prefix + String.join(".", others));
        }
    }
}
