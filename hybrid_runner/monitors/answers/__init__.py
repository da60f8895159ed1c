"""One poll: the request, and what its answer says. Nothing here knows jobs or Postgres."""
