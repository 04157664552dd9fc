"""Who takes part in a round: availability of the clients."""
