"""Digital uplink: every client uploads its update by itself."""
