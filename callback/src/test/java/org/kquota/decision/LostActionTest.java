package org.kquota.decision;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LostActionTest {
    @ParameterizedTest
    @CsvSource({"PAUSE,PAUSE", "OPEN,OPEN", "BOUNDED,PAUSE"})
    void withoutALastDecisionItIsAState(LostAction action, State state) {
        assertEquals(state, action.state());
    }
}
