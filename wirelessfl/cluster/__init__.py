"""Local training of one run on workers: processes of this machine, or a Dask cluster and the connection with one."""
