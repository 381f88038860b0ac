"""Upper bounds in real time, and whether the machine was too busy to judge them."""
import threading
import time

TOO_BUSY = 0.2  # seconds


class Stalls:
    """The worst stall of a thread that only sleeps a millisecond at a time."""

    def __init__(self):
        self.worst = 0
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            begun = time.monotonic()
            time.sleep(0.001)
            self.worst = max(self.worst, time.monotonic() - begun)


STALLS = Stalls()
