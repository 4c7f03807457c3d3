package org.kquota.threshold;

/** The observed rates of what clients send that reaches the log: one-minute moving averages, in bytes per second. */
public interface BytesIn {
    /** Of all topics together. */
    double total();

    /** Of one topic; 0 while nothing has come in. */
    double of(String topic);
}
