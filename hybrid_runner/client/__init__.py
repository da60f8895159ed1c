"""The side of applications: they put jobs in, wait for them, look at them and change them."""
