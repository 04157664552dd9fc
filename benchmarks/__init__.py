"""How fast the simulator is, beside what a researcher writes by hand and beside what the machine can do."""
