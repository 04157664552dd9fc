"""Normal numbers as functions of a seed: on the host, and on a device."""
