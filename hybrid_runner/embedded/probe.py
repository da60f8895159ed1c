"""Ask a Postgres on a Unix socket whether it takes connections, without a driver."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from hybrid_runner.embedded.folder import SOCKET_NAME

NAME = "hybrid_runner"
"""The user and the database."""
_PROTOCOL = 3 << 16
_PARAMETERS = f"user\0{NAME}\0database\0{NAME}\0application_name\0{NAME} probe\0\0".encode()
_TERMINATE = b"X" + struct.pack("!i", 4)


def answers(sockets: Path, *, patience: float = 1.0) -> bool:
    """Whether a session on our database gets as far as "ready for query"."""
    startup = struct.pack("!ii", 8 + len(_PARAMETERS), _PROTOCOL) + _PARAMETERS
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(patience)
            connection.connect(str(sockets / SOCKET_NAME))
            connection.sendall(startup + _TERMINATE)
            answer = b""
            while part := connection.recv(4096):
                answer += part
    except OSError:
        return False
    return b"Z" in _message_types(answer)


def _message_types(answer: bytes) -> bytes:
    types, position = bytearray(), 0
    while position + 5 <= len(answer):
        types.append(answer[position])
        position += 1 + int.from_bytes(answer[position + 1 : position + 5], "big")
    return bytes(types)
