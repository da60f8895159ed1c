"""How a worker says that it lives, and looks after those that do not."""
