"""The Grafana dashboard, built with Grafana's own types, so that what is written is valid by construction."""
