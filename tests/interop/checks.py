"""What is to be true between latchd and Redisson; one function a check.

Those that are BY_THEMSELVES measure, or want all there is of the machine. The others wait
for time to pass most of the time, and do that at the same time.
"""
import checks_cluster
import checks_crash
import checks_fair
import checks_latch
import checks_library
import checks_local
import checks_many
import checks_plain
import checks_quorum
import checks_rw
import checks_semaphore

PARTS = [checks_plain, checks_fair, checks_rw, checks_many, checks_library,
         checks_local, checks_semaphore, checks_latch]

BY_THEMSELVES = [
    *(("single", check) for part in PARTS for check in part.CHECKS),
    *(("cluster", check) for check in checks_cluster.CHECKS),
    *(("quorum", check) for check in checks_quorum.CHECKS),
]

TOGETHER = [
    *(("single", check) for part in [*PARTS, checks_crash] for check in part.WAITING),
    *(("cluster", check) for check in checks_cluster.WAITING),
    *(("quorum", check) for check in checks_quorum.WAITING),
]
