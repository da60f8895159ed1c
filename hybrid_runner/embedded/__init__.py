"""A Postgres in a folder, for when no DSN is given.

Who does what:
    share.py     a user process: takes its share of the server, starts a keeper when there is none
    keeper.py    one process per folder: starts Postgres, restarts it, stops it after the last user
    server.py    the postgres process: start, readiness, stop
    cluster.py   the data directory: initdb, version
    account.py   which user Postgres runs as when we are root
    binaries.py  where initdb and postgres are
    folder.py    the files of one folder, and where the socket goes
    locks.py     flock, the only truth about who is alive (the kernel lets go after kill -9)

Four locks, each a file in the folder:
    start.lock   exclusive: a user looking for, or starting, the server
    users.lock   shared: one per user; exclusive: the keeper, when nobody uses the server any more
    keeper.lock  exclusive: the keeper, for life
    server.lock  exclusive: inherited by Postgres and all its backends; free means none is left
"""

from hybrid_runner.embedded.folder import EmbeddedError, default_data_directory
from hybrid_runner.embedded.share import EmbeddedPostgres, use_embedded

__all__ = ["EmbeddedError", "EmbeddedPostgres", "default_data_directory", "use_embedded"]
