"""Names that are lent to latchd: LOCK ... LOCAL through two daemons beside RLock, SpinLock and
RFairLock, on one hot name. Everybody gets on, and nobody meets anybody."""
from checks_plain import Wakes
from contend import contend
from contenders import Contender, Goal


class Neighbour(Contender):
    """Takes it with LOCAL, from the daemon's memory where it can; now and then in a way that
    only Redis grants."""

    def ways(self, turn):
        fair = self.goal.words[turn // 4 % len(self.goal.words)]
        return super().ways(turn) if fair or turn % 8 == 7 else (["LOCAL"], [])


def lent_names_take_turns_with_redisson(world):
    contend(world, Goal("lent", world.count(2_000, 50_000), pause_us=0), ["plain"] * 4,
            [world.latchd, world.second] * 4, share=0.004, ours=Neighbour)


def lent_names_change_sides_when_there_is_something_to_do_between(world):
    contend(world, Goal("lent-turns", world.count(4_000, 50_000), pause_us=8000),
            ["plain"] * 5 + ["fenced"] * 3, [world.latchd, world.second] * 4, share=0.02,
            ours=Neighbour)


def lent_names_take_turns_with_spin_locks(world):
    """Nobody hears that a SpinLock waits, and a lent name is not free between two grants. So
    SpinLocks get little, and the less the faster the machine is, as they ask only every so
    many milliseconds; but they get on."""
    with world.latchd_with("asking-local", ["--recheck", "10ms"]) as asking, \
         Wakes(world.redis, "lent-spins"):
        contend(world, Goal("lent-spins", world.count(4_000, 20_000), pause_us=2000),
                ["spin", "spin", "plain"], [asking, world.second] * 2, share=0.0005,
                ours=Neighbour)


def lent_names_are_lent_no_more_while_somebody_stands_in_a_fair_queue(world):
    """The same shares as without LOCAL: nobody of the queue is passed."""
    with world.latchd_with("asking-fair-local", ["--recheck", "50ms"]) as asking:
        for words in ([(), ("FAIR",)], [()]):
            contend(world, Goal("lent-fair", world.count(500, 20_000), 0, words=words),
                    ["fair"] * 2, [asking, world.quick] * 2, share=0.1, ours=Neighbour)


CHECKS = [
    lent_names_take_turns_with_redisson,
    lent_names_change_sides_when_there_is_something_to_do_between,
    lent_names_take_turns_with_spin_locks,
    lent_names_are_lent_no_more_while_somebody_stands_in_a_fair_queue,
]
WAITING = []
