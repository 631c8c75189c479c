"""One Redis, and one daemon or several on it."""
import time

from servers import kept
from stage import crowded

BACK_MS = 2000  # from "Redis answers again" to grants of every name


def a_killed_redis_comes_back(stage):
    """kill -9 under load; it kept its data."""
    redis = stage.keep(kept(stage.folder))
    stage.latchd("a", redis.url)
    crowd = crowded(stage)
    for turn in ("first", "second"):
        crowd.granted(200)
        redis.kill()
        stage.mark(f"{turn} kill")
        time.sleep(0.6)  # how long it is away
        redis.restart()
        crowd.all_granted(stage.mark(f"{turn} return"))
    crowd.granted(200)
    stage.check(gaps={"first return": BACK_MS, "second return": BACK_MS})


CASES = [a_killed_redis_comes_back]
