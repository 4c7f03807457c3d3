"""From the history topic into the tables, exactly once.

`records` reads a record's value and finds its problem, `rows` makes the tables' rows of it, `stream`
carries batches from Kafka into Delta, and `lineage` refuses a checkpoint that does not belong to the tables.
"""
