"""Every interleaving of an application, workers and the later writer over rows of one table."""
