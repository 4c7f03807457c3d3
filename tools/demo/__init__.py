"""`make demo`: the demonstration on throw-away hosts with systemd, rolled out by playbooks/rollout.yml."""
