"""What applications do: enqueue jobs, wait for them, read them and change them."""
