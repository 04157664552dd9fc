"""The audit: what an adversary can tell, played on the simulator's own chain."""
