"""Dask clusters: the connection with one, and the local training of one run on its workers."""
