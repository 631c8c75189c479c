<?php
declare(strict_types=1);

namespace Latchd;

/** An error that latchd answered, or the reason why there is no answer. */
class LatchdError extends \RuntimeException
{
    /** @param string $kind the first word of latchd's error, such as NOPERM */
    final public function __construct(string $message, public readonly string $kind = 'ERR', ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }
}

/** Somebody else has the lock, and the wait is over: TIMEOUT. */
final class LockTimeout extends LatchdError
{
}

/** The lock was lost before it was released, so somebody else may have had it since: NOTHELD. */
final class LockLost extends LatchdError
{
}

/** No address of latchd answers: UNREACHABLE, or GOAWAY from a latchd that stops. */
final class Unreachable extends LatchdError
{
}

/** latchd's Redis cannot be reached, or refuses to grant: BACKEND or NOREPLICAS. */
final class Backend extends LatchdError
{
}

/** Owners would wait for each other. */
final class Deadlock extends LatchdError
{
}

/** A limit of latchd's configuration is reached. */
final class Limit extends LatchdError
{
}

/** The user may not do that, or did not log in. */
final class NoPermission extends LatchdError
{
}

/** The name belongs to other data, or to a lock of the other class. */
final class WrongType extends LatchdError
{
}

/** There is no such latch: it was never set, or was deleted, evicted or lost. */
final class LatchGone extends LatchdError
{
}
