"""The rules and the figures of our prose; docs/STYLE.md explains them."""
