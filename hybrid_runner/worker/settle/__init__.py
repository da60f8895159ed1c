"""Writing down what became of claimed jobs, in batches."""
