"""Independent masters, of which a majority is enough."""
from faults import Network
from servers import Redis, kept
from stage import WATCHDOG_MS, crowded

GO_ON_MS = 2000  # with a minority that is gone: nobody is to notice much
BACK_MS = 2000  # from when a majority answers again
QUARANTINE_MS = WATCHDOG_MS  # in which who came back empty abstains
ORPHAN_MS = WATCHDOG_MS  # what was granted while none could be, or undone


def quorum(stage, count, make=kept):
    masters = [stage.keep(make(stage.folder)) for _ in range(count)]
    url = "quorum " + " ".join(master.url for master in masters)
    for name in "ab":
        stage.latchd(name, url)
    crowd = crowded(stage, all_kinds=False)
    crowd.granted(200)
    return crowd, masters


def forgetful(folder):
    return Redis(folder).ready()


def one_of_three_is_killed_and_comes_back(stage):
    """One after the other; each kept its data, and is whole again before the next."""
    crowd, masters = quorum(stage, 3)
    gaps = {}
    for number, master in enumerate(masters):
        master.kill()
        crowd.all_granted(stage.mark(f"{number} dies"))
        master.restart()
        back = stage.mark(f"{number} is back")
        crowd.all_granted(back)
        crowd.granted(1, back + int(1.3e6 * WATCHDOG_MS))  # it abstains no more
        gaps[f"{number} dies"] = GO_ON_MS
        gaps[f"{number} is back"] = GO_ON_MS
    stage.check(gaps=gaps)


def one_of_three_stands_still(stage):
    """SIGSTOP, and it goes on."""
    crowd, masters = quorum(stage, 3)
    gaps = {}
    for number, master in enumerate(masters[:2]):
        master.pause()
        crowd.all_granted(stage.mark(f"{number} stops"))
        crowd.granted(150)
        master.resume()
        crowd.all_granted(stage.mark(f"{number} goes on"))
        crowd.granted(100)
        gaps[f"{number} stops"] = GO_ON_MS
        gaps[f"{number} goes on"] = GO_ON_MS
    stage.check(gaps=gaps)


def two_of_five_come_back_empty(stage):
    """They abstain for as long as what they knew could matter; then two others die."""
    crowd, masters = quorum(stage, 5, forgetful)
    for master in masters[:2]:
        master.kill()
    crowd.all_granted(stage.mark("two die"))
    for master in masters[:2]:
        master.restart()
    back = stage.mark("two are back, empty")
    crowd.all_granted(back)
    crowd.granted(1, back + int(1.3e6 * WATCHDOG_MS))  # they abstain no more
    for master in masters[3:]:
        master.kill()
    crowd.all_granted(stage.mark("two others die"))
    crowd.granted(100)
    stage.check(gaps={"two die": GO_ON_MS, "two are back, empty": GO_ON_MS,
                      "two others die": GO_ON_MS})


def without_a_majority_nothing_is_granted(stage):
    """Two of three stand still, and go on."""
    crowd, masters = quorum(stage, 3)
    for master in masters[1:]:
        master.pause()
    stage.mark("a majority stops")
    crowd.errors(30)
    for master in masters[1:]:
        master.resume()
    crowd.all_granted(stage.mark("it goes on"))
    crowd.granted(100)
    stage.check(gaps={"it goes on": BACK_MS + ORPHAN_MS})


def two_that_forget_in_a_row_grant_nothing_twice(stage):
    """Of three, one comes back empty and then another: together they are a majority that
    knows nothing. They abstain until all is over that they ever granted."""
    crowd, masters = quorum(stage, 3, forgetful)
    for master in masters[:2]:
        master.kill()
        master.restart()
    back = stage.mark("two are back, empty")
    crowd.all_granted(back)
    crowd.granted(100)
    stage.check(gaps={"two are back, empty": BACK_MS + ORPHAN_MS + QUARANTINE_MS})


def each_daemon_sees_another_majority(stage):
    """One cannot reach the last, the other not the first. What each had there just then
    stays for its lease, and can be in the way of both."""
    network = stage.keep(Network(stage.folder))
    masters = [stage.keep(kept(stage.folder)) for _ in range(3)]
    ports = [network.stands_for(master.port) for master in masters]
    url = "quorum " + " ".join(f"redis://127.0.0.1:{port}" for port in ports)
    network.introduce([stage.latchd(name, url).ready() for name in "ab"])
    crowd = crowded(stage, all_kinds=False)
    crowd.granted(200)
    network.between("a", masters[2].port, "hold")
    network.between("b", masters[0].port, "hold")
    crowd.all_granted(stage.mark("cut off"))
    crowd.granted(200)
    for master in masters:
        network.between("*", master.port, "pass")
    crowd.all_granted(stage.mark("healed"))
    stage.check(gaps={"cut off": GO_ON_MS + ORPHAN_MS, "healed": GO_ON_MS})


CASES = [
    one_of_three_is_killed_and_comes_back,
    one_of_three_stands_still,
    two_of_five_come_back_empty,
    without_a_majority_nothing_is_granted,
    two_that_forget_in_a_row_grant_nothing_twice,
    each_daemon_sees_another_majority,
]
