<?php
declare(strict_types=1);

namespace Latchd;

/** A hold. Made by Latchd. */
final class Lock
{
    /**
     * @param ?int $token grows with each grant of the name: hand it to what the lock protects. Null after attach().
     * @param ?float $end when the lease is over, by Latchd::clock(); null: latchd renews the hold
     */
    public function __construct(
        private readonly Latchd $latchd,
        public readonly string $name,
        public readonly string $id,
        public readonly ?int $token,
        private ?float $end,
    ) {
    }

    /**
     * Asks latchd, and attaches the hold to this connection. Call it between two parts of the work.
     *
     * @throws Unreachable when nobody can say so
     */
    public function isHeld(): bool
    {
        try {
            $this->secondsLeft();
            return true;
        } catch (LockLost) {
            return false;
        }
    }

    /** @throws LockLost */
    public function assertHeld(): void
    {
        $this->secondsLeft();
    }

    /**
     * For so long the hold is surely held, by the program's own clock. It asks latchd, as isHeld() does.
     *
     * @throws LockLost
     */
    public function secondsLeft(): float
    {
        $began = Latchd::clock();
        $lease = [];
        if ($this->end !== null) { // RENEW without LEASE would make latchd renew it for ever
            $lease = ['LEASE', (int)floor(($this->end - $began) * 1000)];
            if ($lease[1] < 100) {
                throw new LockLost('NOTHELD', "the lease of '{$this->name}' is over");
            }
        }
        return $this->renew($began, $lease);
    }

    /**
     * Gives the hold a lease that begins now.
     *
     * @throws LockLost
     */
    public function extend(float $lease): void
    {
        $began = Latchd::clock();
        $this->renew($began, ['LEASE', (int)round($lease * 1000)]);
        $this->end = $began + $lease;
    }

    /** @throws LockLost when it was lost before */
    public function release(): void
    {
        $this->latchd->ask('UNLOCK', $this->name, 'ID', $this->id);
    }

    private function renew(float $began, array $lease): float
    {
        $left = $this->latchd->ask('RENEW', $this->name, 'ID', $this->id, ...$lease);
        return $left / 1000 - (Latchd::clock() - $began);
    }
}
