"""Ansible's linear strategy by Mitogen: processes that stay on the hosts do all tasks until the play ends."""

import ansible_mitogen.affinity
import ansible_mitogen.loaders
import ansible_mitogen.strategy

# Mitogen would bind each of its processes to one processor, and with them what they start: whole hosts, too.
ansible_mitogen.affinity.policy = ansible_mitogen.affinity.Policy()
_Linear = ansible_mitogen.loaders.strategy_loader.get("linear", class_only=True)


class StrategyModule(ansible_mitogen.strategy.StrategyMixin, _Linear):
    """The class that Ansible looks for in a file of this folder."""
