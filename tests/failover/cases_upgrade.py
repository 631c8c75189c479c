"""Another latchd takes the place of one that is told to stop: no lock is lost, nobody else
has it meanwhile, and clients only have to come again.
"""
from servers import kept
from stage import crowded

LEASE_MS = 10_000  # so long have clients to come back; more than a busy machine takes
TURNS = 2


def replaced(stage, crowd, name):
    """It is, under load, and all goes on."""
    crowd.granted(80)
    mark = stage.mark(f"{name} is replaced, {len(stage.book.marks)}")
    stage.daemons[name].replace()
    crowd.all_granted(mark)


def is_leased(name):
    return name.startswith("leased")


def finish(stage, crowd):
    """What is held with LEASE can be free only when that ends, if its client was cut off."""
    crowd.granted(100)
    limits = [(LEASE_MS, lambda name: not is_leased(name)), (LEASE_MS, is_leased)]
    stage.check(kept=tuple(crowd.names),
                gaps={mark: limits for mark in stage.book.marks if "replaced" in mark})
    back = sum(1 for a in stage.book.asks
               if a.verb == "RENEW" and isinstance(a.value, int))
    stage.say(f"{back} times a client came back to its lock")
    assert back >= 3 * len(stage.daemons), "nobody held anything when it mattered"


def clients_wait_at_the_socket(stage):
    """One daemon, and the socket is systemd's."""
    redis = stage.keep(kept(stage.folder))
    stage.latchd("a", redis.url, watchdog_ms=LEASE_MS, activated=True)
    crowd = crowded(stage)
    for _ in range(TURNS):
        replaced(stage, crowd, "a")
    finish(stage, crowd)


def clients_go_to_the_other_one(stage):
    """Two daemons, one after the other."""
    redis = stage.keep(kept(stage.folder))
    for name in "ab":
        stage.latchd(name, redis.url, watchdog_ms=LEASE_MS, activated=name == "a")
    crowd = crowded(stage)
    for name in "ab":
        replaced(stage, crowd, name)
        stage.daemons[name].ready()
    finish(stage, crowd)


def new_daemons_come_before_the_old_ones_go(stage):
    """A rolling update of Kubernetes, behind a Service: who connects gets to the new one, whose
    predecessor is then told to stop."""
    redis = stage.keep(kept(stage.folder))
    for name in "ab":
        stage.latchd(name, redis.url, watchdog_ms=LEASE_MS)
    crowd = crowded(stage)
    for name in "ab":
        crowd.granted(80)
        new = stage.latchd(f"new-{name}", redis.url, watchdog_ms=LEASE_MS).ready()
        crowd.daemons[name] = new.socket
        mark = stage.mark(f"{name} is replaced")
        stage.daemons.pop(name).leave()
        crowd.all_granted(mark)
    finish(stage, crowd)


CASES = [clients_wait_at_the_socket, clients_go_to_the_other_one,
         new_daemons_come_before_the_old_ones_go]
