"""Another program on the gateway's port."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Impostor:
    """Another program on the port. It writes down all that it is sent, and answers as it likes."""

    def __init__(self, port: int, answer: bytes) -> None:
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self.listener.getsockname()[1]
        self.heard = b""
        self.answer = answer
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(link,), daemon=True).start()

    def _talk(self, link: socket.socket) -> None:
        with link:
            link.settimeout(5)
            try:
                while chunk := link.recv(65_536):
                    self.heard += chunk
                    link.sendall(self.answer)
            except OSError:
                return


@contextmanager
def impostor(port: int = 0, body: bytes = b'{"identity": "me"}') -> Iterator[Impostor]:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    one = Impostor(port, head + body)
    try:
        yield one
    finally:
        one.listener.close()
