"""A warehouse to play with: what it says of a query is a function of the time since that began."""
