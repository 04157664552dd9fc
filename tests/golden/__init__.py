"""Golden numbers: what one seed gives, by stream version."""
