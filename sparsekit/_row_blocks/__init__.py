"""Data that comes in blocks of rows: from Dask, from folders on disk, or from a list in memory."""
