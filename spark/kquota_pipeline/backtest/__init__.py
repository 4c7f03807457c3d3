"""The effect of another policy, simulated in closed loop: what it holds back, the disks do not get."""
