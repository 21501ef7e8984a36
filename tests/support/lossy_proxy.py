"""A proxy between a client and a server, which loses answers."""

import socket
import threading
from itertools import count


class LossyProxy:
    """A proxy that passes every request on, and loses the answers to some of them."""

    def __init__(self, port: int, *, loses: set[int]) -> None:
        self._target, self._loses, self._numbers = port, loses, count()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near, socket.create_connection(("127.0.0.1", self._target)) as far:
            there = threading.Thread(target=self._pass_on, args=(near, far), daemon=True)
            there.start()
            while answer := far.recv(1 << 20):
                if next(self._numbers) in self._loses:
                    self.lost += 1
                    break
                near.sendall(answer)
            near.shutdown(socket.SHUT_RDWR)
            there.join()

    def _pass_on(self, near: socket.socket, far: socket.socket) -> None:
        while request := near.recv(1 << 20):
            far.sendall(request)
        far.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
