<?php
declare(strict_types=1);

namespace Latchd;

use Illuminate\Cache\Lock as CacheLock;
use Illuminate\Contracts\Cache\LockTimeoutException;

/** Laravel's owner is the DATA of the hold, so that every process finds it. */
final class LaravelLock extends CacheLock
{
    private ?Lock $lock = null;

    public function __construct(private readonly Latchd $latchd, string $name, int $seconds, ?string $owner)
    {
        parent::__construct($name, $seconds, $owner);
    }

    public function acquire(): bool
    {
        return $this->take(0.0);
    }

    /** Waits in latchd's queue, where Laravel's own asks four times a second. */
    public function block($seconds, $callback = null): mixed
    {
        if (!$this->take((float)$seconds)) {
            throw new LockTimeoutException("somebody else has $this->name");
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

    /** False: it is not held by this owner. */
    public function release(): bool
    {
        try {
            if ($this->lock !== null) {
                $this->lock->release();
                return true;
            }
            foreach ($this->latchd->info($this->name)['holds'] as $hold) {
                if ($hold['data'] === $this->owner) {
                    $this->latchd->insist(['UNLOCK', $this->name, 'TOKEN', $hold['token']]);
                    return true;
                }
            }
            return false;
        } catch (LockLost) {
            return false;
        } finally {
            $this->lock = null;
        }
    }

    public function forceRelease(): void
    {
        $this->latchd->forceUnlock($this->name);
    }

    protected function getCurrentOwner(): string
    {
        return $this->latchd->info($this->name)['holds'][0]['data'] ?? '';
    }

    private function take(float $wait): bool
    {
        $lease = $this->seconds > 0 ? $this->seconds : null;
        $lock = $this->latchd->lock($this->name, $wait, data: $this->owner, lease: $lease);
        $this->lock = $lock ?? $this->lock;
        return $lock !== null;
    }
}
