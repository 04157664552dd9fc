"""The uplink over the air: transmitters, the channel that adds, and receivers."""
