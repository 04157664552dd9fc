"""wirelessfl: a discrete-event simulator of federated learning over a radio network."""
