"""What is to be true between latchd and Redisson; one function a check."""
import checks_plain

ALL = [
    *checks_plain.CHECKS,
]
