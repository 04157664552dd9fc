"""The audit: lower bounds on ε by attacks on the simulator itself."""
