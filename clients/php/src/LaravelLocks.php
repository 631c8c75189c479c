<?php
declare(strict_types=1);

namespace Latchd;

use Illuminate\Contracts\Cache\LockProvider;

/** Laravel's atomic locks, kept by latchd: README.md. */
final class LaravelLocks implements LockProvider
{
    public function __construct(private readonly Latchd $latchd, private readonly string $prefix = '')
    {
    }

    /** With 0 seconds latchd renews the lock while the process lives. */
    public function lock($name, $seconds = 0, $owner = null): LaravelLock
    {
        return new LaravelLock($this->latchd, $this->prefix . $name, (int)$seconds, $owner);
    }

    public function restoreLock($name, $owner): LaravelLock
    {
        return $this->lock($name, 0, $owner);
    }
}
