package org.kquota.decision;

import java.util.Objects;
import java.util.function.Function;

/**
 * A value, or the reason why there is none: expected failures are values, not exceptions.
 *
 * @param value  the value, or null
 * @param reason one human sentence, or null where there is a value
 */
public record Result<T>(T value, String reason) {
    public Result {
        if ((value == null) == (reason == null)) {
            throw new IllegalArgumentException("a result has either a value or a reason");
        }
    }

    public static <T> Result<T> of(T value) {
        return new Result<>(Objects.requireNonNull(value), null);
    }

    public static <T> Result<T> refused(String reason) {
        return new Result<>(null, Objects.requireNonNull(reason));
    }

    public boolean isPresent() {
        return value != null;
    }

    /** The next step's result, or this reason. */
    public <R> Result<R> then(Function<T, Result<R>> next) {
        return isPresent() ? next.apply(value) : refused(reason);
    }
}
