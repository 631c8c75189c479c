<?php
declare(strict_types=1);

namespace Latchd;

use Symfony\Component\Lock\BlockingStoreInterface;
use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Key;

/** A store of Symfony Lock, kept by latchd: README.md. The key carries the request's ID, also into other processes. */
final class SymfonyStore implements BlockingStoreInterface
{
    /** @var \WeakMap<Key, Lock> that this process has taken */
    private \WeakMap $locks;

    public function __construct(private readonly Latchd $latchd)
    {
        $this->locks = new \WeakMap();
    }

    public function save(Key $key): void
    {
        $this->take($key, 0.0);
    }

    public function waitAndSave(Key $key): void
    {
        $this->take($key, null);
    }

    /** latchd does not renew it from then on. */
    public function putOffExpiration(Key $key, float $ttl): void
    {
        $key->reduceLifetime($ttl); // counted from before the question, so that the key never outlives the hold
        $lease = ['LEASE', Latchd::milliseconds($ttl)];
        $this->askForHold($key, fn (Lock $lock) => $lock->extend($ttl), 'RENEW', ...$lease);
    }

    public function delete(Key $key): void
    {
        try {
            $this->askForHold($key, fn (Lock $lock) => $lock->release(), 'UNLOCK');
        } catch (LockConflictedException) {
            // It is gone, as it shall be.
        }
        $key->removeState(self::class);
    }

    public function exists(Key $key): bool
    {
        [, $token] = $this->stateOf($key);
        return $token !== 0 && in_array($token, array_column($this->latchd->info((string)$key)['holds'], 'token'));
    }

    /** @return array{string, int} the ID of the request and the token */
    private function stateOf(Key $key): array
    {
        return $key->hasState(self::class) ? $key->getState(self::class) : ['', 0];
    }

    private function take(Key $key, ?float $wait): void
    {
        $lock = null;
        if ($this->exists($key)) {
            [$id] = $this->stateOf($key);
            if (($this->locks[$key] ?? null)?->id === $id) {
                return;
            }
            $lock = $this->latchd->restore((string)$key, $id); // of another process, which may end
        }
        $lock ??= $this->latchd->lock((string)$key, $wait)
            ?? throw new LockConflictedException("somebody else has $key");
        $this->locks[$key] = $lock;
        $key->setState(self::class, [$lock->id, $lock->token]);
    }

    /** By the lock where this process has taken it, else by the ID. */
    private function askForHold(Key $key, callable $work, string $word, string|int ...$more): void
    {
        [$id] = $this->stateOf($key);
        try {
            if ($id === '') {
                throw new LockLost("$key was not taken", 'NOTHELD');
            }
            $lock = $this->locks[$key] ?? null;
            if ($lock?->id === $id) {
                $work($lock);
            } else {
                $this->latchd->insist([$word, (string)$key, 'ID', $id, ...$more]);
            }
        } catch (LockLost $lost) {
            throw new LockConflictedException("$key is not held", 0, $lost);
        }
    }
}
