"""The table statement → tests: what kquota has to do (docs/acceptance.yml), and which tests prove it."""
