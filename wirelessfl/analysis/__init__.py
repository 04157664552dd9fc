"""What is done with finished runs."""
