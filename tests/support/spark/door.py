"""A door between a client and a server on this machine: bytes pass through it until it is closed."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from urllib.parse import urlsplit

CHUNK = 65_536


class Door:
    """Listens on a port of its own, and passes bytes on to a Spark Connect server; `remote` is the door's
    URL."""

    def __init__(self, remote: str) -> None:
        parts = urlsplit(remote)
        assert parts.hostname is not None
        assert parts.port is not None
        self._server = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        # the host keeps its name: by it the client chooses its credentials
        self.remote = remote.replace(f":{parts.port}", f":{self._listener.getsockname()[1]}", 1)

    def __enter__(self) -> Door:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shut()

    def shut(self) -> None:
        """Ends all connections, and refuses new ones."""
        for connection in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        while True:  # until it is shut
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
            except OSError:
                return
            self._open += [client, server]
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
