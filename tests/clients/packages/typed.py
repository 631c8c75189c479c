"""What mypy accepts of the installed package, and what it refuses. Not run."""
from latchd import AsyncLatchd, Latchd, Lost

lock = Latchd("redis://localhost:5625").lock("job", wait=1, fair=True, grace=0.5, other={"later": 1})
lost: Lost = lock.lost
lost.wait(1, 2)  # type: ignore[call-arg]
locked: bool = lock.locked() or lock.held
AsyncLatchd("redis://localhost:5625").lock("job", priority=9, urgency=9)  # type: ignore[call-arg]
