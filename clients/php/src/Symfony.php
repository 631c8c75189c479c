<?php
// Symfony Lock: new LockFactory(new \Latchd\Symfony($latchd)).
declare(strict_types=1);

namespace Latchd;

use Symfony\Component\Lock\BlockingStoreInterface;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Key;

final class Symfony implements BlockingStoreInterface
{
    public function __construct(private readonly Latchd $latchd)
    {
    }

    public function save(Key $key)
    {
        $this->take($key, 0);
    }

    public function waitAndSave(Key $key)
    {
        $this->take($key, INF);
    }

    public function putOffExpiration(Key $key, float $ttl)
    {
        try {
            ($this->lock($key) ?? throw new LockConflictedException())->extend($ttl);
        } catch (LockLost $lost) {
            throw new LockConflictedException($lost->getMessage(), 0, $lost);
        }
    }

    public function delete(Key $key)
    {
        try {
            $this->lock($key)?->release();
        } catch (LockLost) {
            // It is gone, as the caller wishes.
        }
        $key->removeState(self::class);
    }

    public function exists(Key $key)
    {
        $id = $key->hasState(self::class) ? $key->getState(self::class) : '';
        return in_array($id, $this->latchd->holders((string)$key), true);
    }

    /** The hold of a key, which takes its state along into other processes. */
    private function lock(Key $key): ?Lock
    {
        return $key->hasState(self::class)
            ? $this->latchd->attach((string)$key, $key->getState(self::class)) : null;
    }

    private function take(Key $key, float $wait): void
    {
        if ($this->lock($key)?->isHeld()) {
            return;
        }
        $lock = $this->latchd->tryLock((string)$key, $wait) ?? throw new LockConflictedException();
        $key->setState(self::class, $lock->id);
    }
}
