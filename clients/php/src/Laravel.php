<?php
// Laravel's atomic locks: $locks = new \Latchd\Laravel($latchd); $locks->lock('job', 60)->block(5, ...).
declare(strict_types=1);

namespace Latchd;

use Illuminate\Cache\Lock as CacheLock;
use Illuminate\Contracts\Cache\LockProvider;
use Illuminate\Contracts\Cache\LockTimeoutException;

final class Laravel implements LockProvider
{
    public function __construct(private readonly Latchd $latchd)
    {
    }

    /** Without seconds latchd renews the lock while the connection is open. */
    public function lock($name, $seconds = 0, $owner = null): CacheLock
    {
        return new LaravelLock($this->latchd, $name, $seconds, $owner);
    }

    public function restoreLock($name, $owner): CacheLock
    {
        return $this->lock($name, 0, $owner);
    }
}

final class LaravelLock extends CacheLock
{
    private bool $isFirst = true;

    public function __construct(private readonly Latchd $latchd, string $name, int $seconds, ?string $owner)
    {
        parent::__construct($name, $seconds, $owner);
    }

    public function acquire(): bool
    {
        return $this->take(0);
    }

    /** Waits in latchd's queue, where Laravel's own asks four times a second. */
    public function block($seconds, $callback = null)
    {
        if (!$this->take($seconds)) {
            throw new LockTimeoutException();
        }
        if ($callback === null) {
            return true;
        }
        try {
            return $callback();
        } finally {
            $this->release();
        }
    }

    public function release(): bool
    {
        try {
            $this->latchd->attach($this->name, $this->owner)->release();
            return true;
        } catch (LockLost) {
            return false;
        }
    }

    public function forceRelease(): void
    {
        $this->latchd->forceUnlock($this->name);
    }

    protected function getCurrentOwner()
    {
        return $this->latchd->holders($this->name)[0] ?? '';
    }

    /** A request is over with its hold: the next one has an owner of its own. */
    private function take(float $wait): bool
    {
        if (!$this->isFirst) {
            $this->owner = bin2hex(random_bytes(16));
        }
        $options = $this->seconds > 0 ? ['lease' => $this->seconds] : [];
        $lock = $this->latchd->tryLock($this->name, $wait, $options, $this->owner);
        $this->isFirst = false;
        return $lock !== null;
    }
}
