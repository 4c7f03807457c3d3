"""History: transitions, orders and samples, published for the pipeline."""
