"""What each helper has to do, whatever its language. A case gets a Stage."""
import itertools
import os
import signal
import time

from children import until
from faults import Network
from helpers_stage import LEASE_S, PATIENCE_S, TIMEOUT_S, nobody_else_gets_it, waiting
from sentinels import Sentinels

MANY, MANY_LEASE_S = 300, 12  # to renew so many takes a busy machine some seconds
AT_ONCE_S = 10  # on a busy machine; renewals are 20 s apart
CROSSING = 100
LONGEST_ASK_S = 10  # of the helpers: a longer wait is asked for again
BEAT_LEASE_S = 15  # far from a heartbeat


class At:
    """A place to connect to that is no daemon itself."""

    def __init__(self, port, user=""):
        self.url = f"redis://{user}127.0.0.1:{port}"


def waits_and_takes_turns(stage):
    daemon = stage.latchd()
    one, two = stage.agent(daemon), stage.agent(daemon)
    first, token = one.lock("job", 0)
    two.expect(two.tell("lock", "job", 0), "null")
    began = time.monotonic()
    two.expect(two.tell("lock", "job", 500), "null")
    assert time.monotonic() - began >= 0.5, "it did not wait"
    second = two.tell("lock", "job", "-")
    waiting(daemon, "job", 1)
    one.unlock(first)
    assert int(two.expect(second, "token")[0]) > token, "the token did not grow"
    two.unlock(second)
    assert daemon.ask("LOCK", "job", "WAIT", 0), "it is not free"


def takes_the_options_of_lock(stage):
    daemon = stage.latchd()
    agent = stage.agent(daemon)
    readers = [agent.lock("page", 0, "read")[0] for _ in range(2)]
    agent.expect(agent.tell("lock", "page", 0, "write"), "null")
    for reader in readers:
        agent.unlock(reader)
    agent.unlock(agent.lock("page", 0, "write", "owner=ann")[0])
    agent.unlock(agent.lock("fair", 0, "fair", "keep=500", "grace=0")[0])
    key, _ = agent.lock("leased", 0, "lease=1000")
    agent.expect_loss(key)
    agent.unlock(key, "error", "NOTHELD")


def runs_at_most_once_in_a_time(stage):
    """A wait is given up at once, and the release is no loss."""
    daemon = stage.latchd()
    one, two = stage.agent(daemon), stage.agent(daemon)
    key, _ = one.lock("nightly", 0, "at_least=600000")
    one.unlock(key)
    for agent in one, two:
        agent.expect(agent.tell("lock", "nightly", 0, "at_least=600000"), "null")
        agent.expect(agent.tell("lock", "nightly", 0), "null")
    assert daemon.ask("FORCEUNLOCK", "nightly", "ANY") == 1
    key, _ = two.lock("nightly", 0, "at_least=100")
    two.unlock(key)
    key, _ = one.lock("nightly", 10000)
    one.unlock(key)


def takes_permits(stage):
    daemon = stage.latchd()
    one, two = stage.agent(daemon), stage.agent(daemon)
    first, token = one.lock("pool", 0, "permits=2")
    second, later = two.lock("pool", 0, "permits=1")
    assert later > token, "the token did not grow"
    waits = two.tell("lock", "pool", "-", "permits=2")
    waiting(daemon, "pool", 1)
    two.unlock(second)
    daemon.kill()
    daemon.restart()
    time.sleep(1.5 * LEASE_S)
    assert not daemon.ask("LOCK", "pool", "PERMITS", 2, "WAIT", 0), "it is not renewed"
    one.unlock(first)
    two.expect(waits, "token")
    two.unlock(waits)


def stands_in_line_by_priority(stage):
    daemon = stage.latchd()
    agents = [stage.agent(daemon) for _ in range(3)]
    first, _ = agents[0].lock("line", 0, "queue=0", "priority=0")
    later = agents[1].tell("lock", "line", "-", "queue=1")
    waiting(daemon, "line", 1)
    agents[2].expect(agents[2].tell("lock", "line", "-", "queue=1"), "error", "LIMIT")
    urgent = agents[2].tell("lock", "line", "-", "queue=2", "priority=9")
    waiting(daemon, "line", 2)
    agents[0].unlock(first)
    agents[2].expect(urgent, "token")
    agents[2].unlock(urgent)
    agents[1].expect(later, "token")
    agents[1].unlock(later)


def says_whether_a_name_is_locked(stage):
    daemon = stage.latchd()
    one, two = stage.agent(daemon), stage.agent(daemon)

    def answers(agent, wanted, names="state"):  # which is a key of the reply as well
        agent.expect(agent.tell("locked", names), "answer", str(wanted))

    answers(one, 0)
    key, _ = two.lock("state", 0)
    for agent in one, two:
        answers(agent, 1)
    answers(one, 1, "free,state")
    answers(one, 0, "free,other")
    waits = one.tell("lock", "state", "-", "fair")
    waiting(daemon, "state", 1)
    two.unlock(key)
    one.expect(waits, "token")
    one.unlock(waits)
    for agent in one, two:
        answers(agent, 0)
    for name, option in ("page", "read"), ("pool", "permits=1"):
        key, _ = two.lock(name, 0, option)
        answers(one, 1, name)
        two.unlock(key)
        answers(one, 0, name)
    two.unlock(two.lock("rests", 0, "at_least=600000")[0])
    answers(one, 1, "rests")
    assert two.expect(two.tell("latch", "set", "gate", 1), "answer") == ["1"]
    one.expect(one.tell("locked", "gate"), "error", "WRONGTYPE")
    stage.redis.ask("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", 1)
    with daemon.wire() as wire:
        wire.send("LOCK", "state")
        until(lambda: one.hear(one.tell("locked", "state")) == ["error", "BACKEND"], "the name is withheld")
    stage.redis.kill()
    one.expect(one.tell("locked", "state"), "error", "BACKEND")


def says_whether_a_lent_name_is_locked(stage):
    """Only the latchd that has it on loan knows: through that one, another one, and not where it stands still.

    A question through another daemon ends the loan, and no name is lent for half a minute after it. So each try
    has a name of its own. A try counts for nothing if its loan was over before the question."""
    lender, other = stage.latchd("--local-window", "100ms", lease_s=60), stage.latchd()
    near, far = stage.agent(lender), stage.agent(other)
    names = (f"job{i}" for i in itertools.count())

    def answer(agent, name):
        return agent.hear(agent.tell("locked", name))

    def sure_answer(agent, name):
        return until(lambda: [said for said in [answer(agent, name)] if said != ["error", "BACKEND"]],
                     "the daemons of a busy machine find time")[0]

    with lender.wire() as wire:

        def hold_locally(name):
            for words in ("LOCK", name, "LOCAL"), ("UNLOCK", name), ("LOCK", name, "LOCAL"):
                wire.ask(*words)

        def is_known(agent):
            name = next(names)
            hold_locally(name)
            is_lent = "'local', 1" in str(wire.ask("LOCKINFO", name))
            assert sure_answer(agent, name) == ["answer", "1"]
            wire.ask("UNLOCK", name)
            assert sure_answer(agent, name) == ["answer", "0"]
            return is_lent

        def nobody_knows():
            name = next(names)
            hold_locally(name)
            lender.pause()
            said = answer(far, name)
            lender.resume()
            wire.ask("UNLOCK", name)
            assert said in (["error", "BACKEND"], ["answer", "1"])
            return said == ["error", "BACKEND"]

        for agent in near, far:
            until(lambda agent=agent: is_known(agent), "a client of the loan holds it", PATIENCE_S)
        until(nobody_knows, "the loan lasts while the latchd stands still", PATIENCE_S)


def takes_all_names_or_none(stage):
    daemon = stage.latchd()
    one, two = stage.agent(daemon), stage.agent(daemon)
    names, (held, _) = ["c", "a", "b"], one.lock("b")
    two.expect(two.tell("lock", "c,a,b", 300), "null")
    for name in "a", "c":
        one.unlock(one.lock(name)[0])
    waits = two.tell("lock", "c,a,b", "-")
    waiting(daemon, "b", 1)
    one.unlock(held)
    for name, token in zip(names, two.expect(waits, "token")):
        assert token in str(daemon.ask("LOCKINFO", name)), f"{token} is not the token of {name}"
    daemon.kill()
    daemon.restart()
    for name in names:
        nobody_else_gets_it(daemon, name, LEASE_S / 2)
    assert two.silent(waits), "it was told that a lock is lost"
    assert daemon.ask("FORCEUNLOCK", "a", "ANY") == 1
    two.expect_loss(waits)
    nobody_else_gets_it(daemon, "b", LEASE_S / 2)
    two.unlock(waits, "error", "NOTHELD")
    for name in names:
        one.unlock(one.lock(name)[0])
    two.unlock(two.lock("c,a,b", 0, "owner=ann", "lease=30000")[0])


def leads_with_data_and_is_followed(stage):
    """Through a restart of latchd; a leader that goes and comes meanwhile may be skipped."""
    daemon = stage.latchd()
    leader, follower = stage.agent(daemon), stage.agent(daemon)
    follows = follower.tell("follow", "office")
    follower.expect(follows, "leader", "0", "-")
    for data in "10.0.0.7:5432", "here":
        held, token = leader.lock("office", 0, f"data={data}")
        follower.expect(follows, "leader", str(token), data)
        daemon.kill()
        daemon.restart()
        leader.unlock(held)
        follower.expect(follows, "leader", "0", "-")
    first, _ = leader.lock("office", 0)
    follower.expect(follows, "leader")
    heir = leader.tell("lock", "office", "-", "data=heir")
    waiting(daemon, "office", 1)
    daemon.ask("LEADER", "office")  # asks Redis after the heir, who is in the queue once this is answered
    leader.unlock(first)
    token = leader.expect(heir, "token")[0]
    follower.expect(follows, "leader", token, "heir")
    follower.tell("leave", key=follows)
    follower.expect(follows, "gave-up")
    stage.redis.ask("SET", "data", "1")
    follower.expect(follower.tell("follow", "data"), "error", "WRONGTYPE")


def whoever_vanishes_is_replaced_within_its_heartbeat(stage):
    daemon = stage.latchd(lease_s=BEAT_LEASE_S)
    agent = stage.agent(daemon)
    held, _ = agent.lock("office", 0, "heartbeat=2000", "grace=0")
    other, _ = agent.lock("calm", 0)
    nobody_else_gets_it(daemon, "office", 5)
    assert agent.silent(held), "it was told that the lock is lost"
    agent.pause()
    began = time.monotonic()
    assert daemon.ask("LOCK", "office", "WAIT", 10_000), "it is held for ever"
    took = time.monotonic() - began
    assert took < BEAT_LEASE_S / 2, f"it was free after {took:.1f} s"
    agent.resume()
    agent.expect_loss(held)
    agent.unlock(held, "error", "NOTHELD")
    agent.unlock(other)


def an_owner_waits_for_longer_than_patience(stage):
    """Its LOCK carries the whole wait, of which a helper awaits the first seconds: the silence is not latchd's end."""
    daemon = stage.latchd()
    timeout_s = 5
    one, two = stage.agent(daemon), stage.agent(daemon, timeout_s=timeout_s, patience_s=8)
    held, _ = one.lock("job")
    began = time.monotonic()
    wait_s = LONGEST_ASK_S + timeout_s + 4
    two.expect(two.tell("lock", "job", wait_s * 1000, "owner=ann"), "null")
    assert time.monotonic() - began >= wait_s - 0.01, "it did not wait"
    one.unlock(held)
    two.unlock(two.lock("job", "-", "owner=ann")[0])


def an_owner_gives_up_a_latchd_that_only_says_that_it_is_there(stage):
    """It answers PING, and LOCK no more, as its Redis hangs."""
    daemon = stage.latchd(redis_timeout="60s")
    agent = stage.agent(daemon, timeout_s=2, patience_s=3)
    agent.lock("job")
    stage.redis.pause()
    said = agent.hear(agent.tell("lock", "other", 0, "owner=ann"))
    assert said[0] == "error" and said[1] in ("UNREACHABLE", "BACKEND"), said
    stage.redis.resume()


def has_typed_errors(stage):
    daemon = stage.latchd()
    agent = stage.agent(daemon)
    stage.redis.ask("SET", "data", "1")
    agent.expect(agent.tell("lock", "data", 0), "error", "WRONGTYPE")
    agent.expect(agent.tell("lock", "latchd:mine", 0), "error", "ERR")
    agent.lock("left", 0, "owner=ann")
    right, _ = agent.lock("right", 0, "owner=bob")
    ann = agent.tell("lock", "right", "-", "owner=ann")
    waiting(daemon, "right", 1)
    agent.expect(agent.tell("lock", "left", "-", "owner=bob"), "error", "DEADLOCK")
    agent.unlock(right)
    agent.expect(ann, "token")
    nowhere = stage.agent(At(1))
    nowhere.expect(nowhere.tell("lock", "job", 300), "error", "UNREACHABLE")


def says_that_a_redis_is_no_latchd(stage):
    agent = stage.agent(At(stage.redis.port))
    agent.expect(agent.tell("lock", "job", 0), "error", "NOTLATCHD")
    agent.expect(agent.tell("lock", "from,to", "-"), "error", "NOTLATCHD")
    agent.expect(agent.tell("follow", "job"), "error", "NOTLATCHD")
    agent.expect(agent.tell("latch", "set", "gate", 1), "error", "NOTLATCHD")


def logs_in_by_its_address(stage):
    daemon = stage.latchd()
    daemon.ask("ACL", "SETUSER", "ann", "on", ">secret", "~open*", "&*", "+@all")
    ann = stage.agent(At(daemon.port, "ann:secret@"))
    ann.unlock(ann.lock("open", 0)[0])
    ann.expect(ann.tell("lock", "closed", 0), "error", "NOPERM")
    bob = stage.agent(At(daemon.port, "ann:wrong@"))
    assert bob.expect(bob.tell("lock", "open", 0), "error")[0] in ("NOPERM", "WRONGPASS")


def who_gives_up_leaves_the_queue_at_once(stage):
    daemon = stage.latchd()
    holder, quitter, next_one = (stage.agent(daemon) for _ in range(3))
    held, _ = holder.lock("job")
    for how in ("-", 60_000):
        quits = quitter.tell("lock", "job", how)
        waiting(daemon, "job", 1)
        quitter.tell("give-up", key=quits)
        quitter.expect(quits, "gave-up")
        waiting(daemon, "job", 0)
    quits = quitter.tell("lock", "another,job", "-")
    waiting(daemon, "job", 1)
    quitter.tell("give-up", key=quits)
    quitter.expect(quits, "gave-up")
    waiting(daemon, "job", 0)
    next_one.unlock(next_one.lock("another")[0])
    # One whose time is over leaves no place behind, either.
    quitter.expect(quitter.tell("lock", "job", 100), "null")
    waiting(daemon, "job", 0)
    waits = next_one.tell("lock", "job", "-")
    waiting(daemon, "job", 1)
    holder.unlock(held)
    next_one.expect(waits, "token")


def giving_up_in_the_moment_of_the_grant_leaves_nothing_held(stage):
    daemon = stage.latchd()
    agent = stage.agent(daemon)
    for i in range(40):
        held, _ = agent.lock("job")
        quits = agent.tell("lock", "job", "-")
        waiting(daemon, "job", 1)
        agent.tell("unlock", key=held)
        time.sleep(i % 8 / 4000)  # now before the grant, now after
        agent.tell("give-up", key=quits)
        if agent.hear(quits)[0] == "token":
            agent.unlock(quits)
        agent.expect(held, "unlocked")


def keeps_its_lock_through_restarts(stage):
    """For longer than a lease after each; then the hold is deleted, and that is told, once."""
    daemon = stage.latchd()
    agent = stage.agent(daemon)
    key, _ = agent.lock("job")
    for end in (daemon.kill, daemon.end):
        end()
        daemon.child.wait()
        daemon.restart()
        nobody_else_gets_it(daemon, "job", 1.5 * LEASE_S)
        assert agent.silent(key), "it was told that the lock is lost"
    stage.redis.ask("DEL", "job")
    agent.expect_loss(key)
    agent.unlock(key, "error", "NOTHELD")


def waits_through_restarts(stage):
    daemon = stage.latchd()
    one, two = stage.agent(daemon), stage.agent(daemon)
    held, _ = one.lock("job")
    waits = two.tell("lock", "job", "-")
    waiting(daemon, "job", 1)
    for end in (daemon.kill, daemon.end):
        end()
        daemon.child.wait()
        daemon.restart()
        waiting(daemon, "job", 1)
    one.unlock(held)
    two.expect(waits, "token")
    two.unlock(waits)


def says_when_its_lease_is_over(stage):
    """latchd stays down: nobody can say so but the program's own clock."""
    daemon = stage.latchd()
    agent = stage.agent(daemon)
    key, _ = agent.lock("job")
    daemon.kill()
    down = time.monotonic()
    agent.expect(key, "uncertain")
    agent.expect(key, "lost")
    took = time.monotonic() - down
    assert LEASE_S / 3 < took < LEASE_S + 2, f"told after {took:.1f} s"
    for line in "job is uncertain: no renewal is confirmed", "job is lost":
        until(lambda line=line: agent.said().count(line) == 1, f"it logs: {line}")
    daemon.restart()
    agent.unlock(key, "error", "NOTHELD")
    again, _ = agent.lock("job")
    agent.unlock(again)


def is_heard(daemon, name):
    until(lambda: daemon.ask("PUBSUB", "NUMSUB", f"lost:{name}")[1] == 1, f"{name} is listened for")


def is_told_at_once_what_latchd_learns(stage):
    """Long before the next renewal: through the one latchd, and through the next one."""
    first, second = (stage.latchd(lease_s=60) for _ in range(2))
    agent = stage.agent(first, second)
    keys = [agent.lock(name)[0] for name in ("job", "other", "third")]
    is_heard(first, "third")
    stage.redis.kill()
    stage.redis.restart()
    for key in keys:
        agent.expect(key, "uncertain", within_s=AT_ONCE_S)
    until(lambda: first.ask("FORCEUNLOCK", "job", "ANY"), "it is freed")
    agent.expect_loss(keys[0], AT_ONCE_S)
    agent.unlock(keys[1])
    first.kill()
    is_heard(second, "third")
    assert second.ask("PUBSUB", "NUMSUB", "lost:job")[1] == 0, "it listens for what is lost"
    assert second.ask("FORCEUNLOCK", "third", "ANY") == 1
    agent.expect_loss(keys[2], AT_ONCE_S)
    for key in keys[0], keys[2]:
        agent.unlock(key, "error", "NOTHELD")


def is_told_at_once_what_happened_before_it_listened(stage):
    """A helper listens only for holds that last."""
    daemon = stage.latchd(lease_s=60)
    agent = stage.agent(daemon)
    with daemon.wire() as other:
        for i in range(5):
            key, _ = agent.lock(f"job{i}")
            assert other.ask("FORCEUNLOCK", f"job{i}", "ANY") == 1
            agent.expect_loss(key, AT_ONCE_S)
            agent.unlock(key, "error", "NOTHELD")
            key, _ = agent.lock("from,to")
            assert other.ask("FORCEUNLOCK", "to", "ANY") == 1
            agent.expect_loss(key, AT_ONCE_S)
            agent.unlock(key, "error", "NOTHELD")


def goes_on_through_the_next_address(stage):
    first, second = stage.latchd(), stage.latchd()
    one, two = stage.agent(first, second), stage.agent(first, second)
    held, _ = one.lock("job")
    waits = two.tell("lock", "job", "-")
    waiting(first, "job", 1)
    first.kill()
    waiting(second, "job", 1)
    nobody_else_gets_it(second, "job", 1.5 * LEASE_S)
    assert one.silent(held), "it was told that the lock is lost"
    one.unlock(held)
    two.expect(waits, "token")
    two.unlock(waits)


def leaves_a_latchd_that_stands_still(stage):
    """It does so after a third of the lease and the timeout: of a short lease a busy machine takes the rest."""
    first, second = (stage.latchd(lease_s=2 * LEASE_S) for _ in range(2))
    agent = stage.agent(first, second)
    held, _ = agent.lock("job")
    first.pause()
    until(lambda: second.ask("LOCKS")[1], "it comes to the second one")
    nobody_else_gets_it(second, "job", 2.5 * LEASE_S)
    assert agent.silent(held), "it was told that the lock is lost"
    first.resume()
    agent.unlock(held)


def survives_a_failover_of_redis(stage):
    sentinels = Sentinels(stage)
    daemon = stage.latchd(redis=sentinels.url)
    agent = stage.agent(daemon)
    held, token = agent.lock("job")
    sentinels.master.kill()
    sentinels.switched()
    nobody_else_gets_it(daemon, "job", 1.5 * LEASE_S)
    assert agent.silent(held), "it was told that the lock is lost"
    agent.unlock(held)
    assert agent.lock("job")[1] > token, "the token did not grow"


def is_uncertain_while_redis_is_down(stage):
    daemon = stage.latchd()
    agent = stage.agent(daemon)
    held, _ = agent.lock("job")
    stage.redis.pause()
    agent.expect(held, "uncertain")
    stage.redis.resume()
    nobody_else_gets_it(daemon, "job", 1.5 * LEASE_S)
    assert agent.silent(held), "it was told that the lock is lost"
    agent.unlock(held)


def a_killed_holder_blocks_nobody_for_long(stage):
    """With a grace, for so long; without one, for its lease. The other lease is far from the grace."""
    for lease_s, options, most_s in ((LEASE_S, [], LEASE_S + 2), (BEAT_LEASE_S, ["grace=1000"], BEAT_LEASE_S / 2),
                                     (BEAT_LEASE_S, ["grace=0"], BEAT_LEASE_S / 2)):
        daemon = stage.latchd(lease_s=lease_s)
        holder, waiter = stage.agent(daemon), stage.agent(daemon)
        holder.lock("job", "-", *options)
        waits = waiter.tell("lock", "job", "-")
        waiting(daemon, "job", 1)
        holder.kill()
        died = time.monotonic()
        waiter.expect(waits, "token")
        took = time.monotonic() - died
        assert took < most_s, f"granted {took:.1f} s after the holder's death"
        waiter.unlock(waits)


def a_child_of_a_killed_holder_keeps_nothing(stage):
    """Neither over the connection that renews nor over the one that asked."""
    daemon = stage.latchd(lease_s=BEAT_LEASE_S)
    holder = stage.agent(daemon)
    keys = [holder.tell("lock", f"job{i}", "-", "grace=0") for i in range(3)]
    for key in keys:
        holder.expect(key, "token")
    until(lambda: connections_of_others(daemon) > 1, "it listens")
    child = int(holder.expect(holder.tell("child"), "pid")[0])
    try:
        nobody_else_gets_it(daemon, "job0", 0.5)
        assert all(holder.silent(key) for key in keys), "the child took the connections with it"
        holder.kill()
        until(lambda: connections_of_others(daemon) == 0, "its connections are closed", BEAT_LEASE_S / 3)
        for i in range(3):
            assert daemon.ask("LOCK", f"job{i}", "WAIT", 0), "it is still held"
    finally:
        os.kill(child, signal.SIGKILL)


def works_over_a_slow_network(stage):
    """200 ms each way; then nothing passes for longer than a lease."""
    daemon, network = stage.latchd(), stage.keep(Network(stage.folder))
    far = At(network.stands_for(daemon.port))
    agent = stage.agent(far)
    network.between("*", daemon.port, "200")
    held, _ = agent.lock("job")
    nobody_else_gets_it(daemon, "job", 1.5 * LEASE_S)
    assert agent.silent(held), "it was told that the lock is lost"
    quits = agent.tell("lock", "job", "-")
    waiting(daemon, "job", 1)
    agent.tell("give-up", key=quits)
    agent.expect(quits, "gave-up")
    waiting(daemon, "job", 0)
    cut = time.monotonic()
    network.between("*", daemon.port, "hold")
    agent.expect_loss(held)
    took = time.monotonic() - cut
    assert took < LEASE_S + 2, f"told after {took:.1f} s"
    network.between("*", daemon.port, "pass")
    agent.unlock(held, "error", "NOTHELD")
    agent.unlock(agent.lock("job")[0])


def takes_what_a_cut_connection_was_granted(stage):
    """The reply with the token is lost on its way; the request is sent again."""
    daemon, network = stage.latchd(), stage.keep(Network(stage.folder))
    agent = stage.agent(At(network.stands_for(daemon.port)))
    agent.unlock(agent.lock("warm")[0])
    for i in range(5):
        with daemon.wire() as other:
            other.ask("LOCK", f"job{i}")
            waits = agent.tell("lock", f"job{i}", "-")
            waiting(daemon, f"job{i}", 1)
            network.between("*", daemon.port, "half", "out")
            other.ask("UNLOCK", f"job{i}")
        until(lambda name=f"job{i}": daemon.ask("LOCKINFO", name)[5] == "held"
              or not daemon.ask("WAITERS", name), "it is granted")
        network.between("*", daemon.port, "pass")
        agent.expect(waits, "token")
        agent.unlock(waits)


def connections_of_others(daemon):
    return len([line for line in daemon.ask("CLIENT", "LIST").splitlines() if line]) - 1


def count_of_holds(daemon):
    return int(daemon.ask("INFO", "locks").split("holds:")[1].split()[0])


def count_of_renewals(daemon):
    said = [line for line in daemon.ask("INFO", "commandstats").splitlines()
            if line.startswith("cmdstat_renew:")]
    return int(said[0].split("calls=")[1].split(",")[0]) if said else 0


def all_are_renewed(daemon):
    wanted = count_of_renewals(daemon) + MANY
    until(lambda: count_of_renewals(daemon) >= wanted, "all are renewed", every_s=0.1)


def holds_many_locks_over_few_connections(stage):
    daemon = stage.latchd(lease_s=MANY_LEASE_S)
    agent = stage.agent(daemon)
    keys = [agent.tell("lock", f"job{i}", "-") for i in range(MANY)]
    for key in keys:
        agent.expect(key, "token")
    until(lambda: connections_of_others(daemon) <= 12, "few connections are left")
    all_are_renewed(daemon)
    assert count_of_holds(daemon) == MANY
    daemon.kill()
    daemon.restart()
    until(lambda: count_of_holds(daemon) == MANY, "all are brought back", every_s=0.1)
    all_are_renewed(daemon)
    time.sleep(MANY_LEASE_S)  # one that is left out would be over
    for key in keys:
        assert agent.silent(key), "it was told that a lock is lost"
        agent.unlock(key)


def a_release_that_crosses_a_renewal_is_no_loss(stage):
    """All are renewed in one go, a third of the lease after they were taken; they are released
    while that is under way, and the network makes it last."""
    daemon, network = stage.latchd(), stage.keep(Network(stage.folder))
    agent = stage.agent(At(network.stands_for(daemon.port)))
    network.between("*", daemon.port, "20")
    keys = [agent.tell("lock", f"job{i}", "-") for i in range(CROSSING)]
    for key in keys:
        agent.expect(key, "token")
    renewals = count_of_renewals(daemon)
    until(lambda: count_of_renewals(daemon) > renewals, "a renewal has begun")
    for key in keys:
        agent.tell("unlock", key=key)
    for key in keys:
        agent.expect(key, "unlocked")
        assert agent.silent(key), "it was told that a lock is lost"
    assert not daemon.ask("LOCKS")[1], "some are left"


def one_object_serves_many_threads(stage):
    daemon = stage.latchd()
    agent = stage.agent(daemon)
    agent.expect(agent.tell("crowd", "job", 30, 10), "overlaps", "0")
    assert count_of_holds(daemon) == 0


def has_latches(stage):
    """Set once, counted once for each ID, and awaited."""
    daemon = stage.latchd()
    agent = stage.agent(daemon)
    agent.expect(agent.tell("latch", "await", "gate", 1000), "error", "GONE")
    for answer in "1", "1":
        agent.expect(agent.tell("latch", "set", "gate", 2, "setter-of-the-gate"), "answer", answer)
    agent.expect(agent.tell("latch", "set", "gate", 2), "answer", "0")
    agent.expect(agent.tell("latch", "await", "gate", 50), "answer", "0")
    waiting = agent.tell("latch", "await", "gate", 60000)
    for _ in range(2):
        agent.expect(agent.tell("latch", "count", "gate", "part-1-of-the-work"), "answer", "1")
    agent.expect(agent.tell("latch", "count", "gate"), "answer", "0")
    agent.expect(waiting, "answer", "1")
    agent.expect(agent.tell("latch", "set", "gate", 1), "answer", "1")
    waiting = agent.tell("latch", "await", "gate", 60000)
    until(lambda: daemon.ask("LATCH", "INFO", "gate")[5] == 1, "it waits")
    agent.expect(agent.tell("latch", "delete", "gate"), "answer", "1")
    agent.expect(waiting, "error", "GONE")


def awaits_a_latch_through_restarts(stage):
    daemon = stage.latchd()
    agent = stage.agent(daemon)
    agent.expect(agent.tell("latch", "set", "gate", 1), "answer", "1")
    waiting = agent.tell("latch", "await", "gate", 60000)
    until(lambda: daemon.ask("LATCH", "INFO", "gate")[5] == 1, "it waits")
    daemon.kill()
    daemon.child.wait()
    daemon.restart()
    agent.expect(agent.tell("latch", "count", "gate"), "answer", "0")
    agent.expect(waiting, "answer", "1")


CASES = [waits_and_takes_turns, takes_the_options_of_lock, runs_at_most_once_in_a_time,
         takes_permits, says_whether_a_name_is_locked, says_whether_a_lent_name_is_locked,
         stands_in_line_by_priority, takes_all_names_or_none,
         leads_with_data_and_is_followed, whoever_vanishes_is_replaced_within_its_heartbeat,
         an_owner_waits_for_longer_than_patience,
         an_owner_gives_up_a_latchd_that_only_says_that_it_is_there,
         has_typed_errors, says_that_a_redis_is_no_latchd, logs_in_by_its_address, who_gives_up_leaves_the_queue_at_once,
         giving_up_in_the_moment_of_the_grant_leaves_nothing_held,
         keeps_its_lock_through_restarts, waits_through_restarts, says_when_its_lease_is_over,
         is_told_at_once_what_latchd_learns, is_told_at_once_what_happened_before_it_listened,
         goes_on_through_the_next_address, leaves_a_latchd_that_stands_still,
         survives_a_failover_of_redis, is_uncertain_while_redis_is_down,
         a_killed_holder_blocks_nobody_for_long, a_child_of_a_killed_holder_keeps_nothing,
         works_over_a_slow_network,
         takes_what_a_cut_connection_was_granted, holds_many_locks_over_few_connections,
         a_release_that_crosses_a_renewal_is_no_loss, one_object_serves_many_threads,
         has_latches, awaits_a_latch_through_restarts]
# They need processors more than others do, so few of them run beside each other.
HEAVY = {holds_many_locks_over_few_connections, a_release_that_crosses_a_renewal_is_no_loss}
# They only wait, and for long: once for each language is enough.
LONG = {an_owner_waits_for_longer_than_patience, an_owner_gives_up_a_latchd_that_only_says_that_it_is_there}
# For those whose waits end by a signal only.
CANNOT_GIVE_UP = {who_gives_up_leaves_the_queue_at_once,
                  giving_up_in_the_moment_of_the_grant_leaves_nothing_held,
                  works_over_a_slow_network}
# For those that run nothing beside the program: it asks instead of being told, and its children inherit the connection.
NO_BACKGROUND = {is_told_at_once_what_latchd_learns, a_child_of_a_killed_holder_keeps_nothing}
