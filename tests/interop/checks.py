"""What is to be true between latchd and Redisson; one function a check."""
import checks_crash
import checks_fair
import checks_many
import checks_plain
import checks_rw

ALL = [
    *checks_plain.CHECKS,
    *checks_fair.CHECKS,
    *checks_rw.CHECKS,
    *checks_many.CHECKS,
    *checks_crash.CHECKS,
]
