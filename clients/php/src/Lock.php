<?php
declare(strict_types=1);

namespace Latchd;

/** A lock that was taken: of Latchd::lock(). One of several names is lost when any of them is. */
final class Lock
{
    private const LEAST_LEASE_S = 0.1; // what latchd takes
    private const HEARTBEAT_PART = 2 / 3; // after which a hold that nothing confirmed is lost

    /** The fencing token: it grows with each grant of the name. Hand it to what the lock protects. */
    public int $token = 0;
    /** @var array<string, int> that of each name */
    public array $tokens = [];
    private bool $isUncertain = false;
    private bool $isLost = false;
    private bool $isReleased = false; // or shall be
    private bool $isUnlocked = false; // and latchd has said so
    private float $until = -INF; // by the last confirmation
    private ?float $end; // of a lease that latchd does not renew
    private ?Connection $on = null; // that latchd renews it for
    private int $pid; // a fork has none of its parent's holds

    /**
     * @internal
     * @param list<string> $names
     * @param list<string|int> $kind READ or WRITE
     */
    public function __construct(
        private readonly Latchd $latchd,
        public readonly array $names,
        public readonly string $id,
        private readonly array $kind,
        private readonly ?float $lease,
        private readonly ?float $heartbeat,
    ) {
        $this->end = $lease === null ? null : INF;
        $this->pid = getmypid();
    }

    /**
     * Whether it is held. Asks latchd, and attaches the hold to this connection, unless it is known to be lost.
     * Without an answer it counts as held for the rest of the time that was confirmed.
     */
    public function isHeld(): bool
    {
        if ($this->isOver()) {
            return false;
        }
        $this->latchd->confirm($this);
        return !$this->isLost;
    }

    /** @throws LockLost unless isHeld() */
    public function assertHeld(): void
    {
        if (!$this->isHeld()) {
            throw new LockLost($this->name() . ' is not held', 'NOTHELD');
        }
    }

    /** The last question had no answer, and the time that was confirmed before is not over yet. */
    public function isUncertain(): bool
    {
        return $this->isUncertain && !$this->isLost;
    }

    /** So many seconds were left of what latchd confirmed last. Asks nothing. */
    public function secondsLeft(): float
    {
        return $this->isOver() ? 0.0 : max(0.0, $this->until - Latchd::clock());
    }

    /**
     * From now on the hold lasts for so many seconds, and latchd does not renew it.
     *
     * @throws LockLost
     */
    public function extend(float $lease): void
    {
        if ($this->isOver()) {
            throw new LockLost($this->name() . ' is not held', 'NOTHELD');
        }
        $sent = Latchd::clock();
        try {
            foreach ($this->commands('RENEW', 'LEASE', Latchd::milliseconds($lease)) as $words) {
                $this->latchd->ask($words);
            }
        } catch (LockLost $lost) {
            $this->lose();
            throw $lost;
        }
        $this->until = $this->end = $sent + $lease;
        $this->latchd->forget($this);
    }

    /**
     * Releases it. Once that is done, the second time does nothing.
     *
     * @throws LockLost if the lock was lost before
     * @throws Unreachable if no latchd answers; the hold then ends with its lease, or its grace, unless a second call
     *     releases it
     */
    public function release(): void
    {
        if ($this->isUnlocked) {
            return;
        }
        $isOwn = $this->pid === getmypid();
        $this->isReleased = true;
        if ($isOwn) {
            $this->latchd->release($this, $this->commands('UNLOCK'));
        }
        $this->isUnlocked = true;
        if ($this->isLost || !$isOwn) {
            throw new LockLost($this->name() . ' was lost before it was released', 'NOTHELD');
        }
    }

    public function name(): string
    {
        return implode(' and ', $this->names);
    }

    /** @internal latchd does not renew it. */
    public function isLeased(): bool
    {
        return $this->end !== null;
    }

    /** @internal @return list<list<string|int>> one for each name */
    public function commands(string $word, string|int ...$more): array
    {
        return array_map(fn (string $name) => [$word, $name, ...$this->kind, 'ID', $this->id, ...$more], $this->names);
    }

    /** @internal It was granted: learns over the same connection how long it lasts. */
    public function begin(Connection $link, array $tokens, float $timeout): void
    {
        $this->tokens = array_combine($this->names, array_map(intval(...), $tokens));
        $this->token = $this->tokens[$this->names[0]];
        if ($this->lease !== null) {
            $this->end = Latchd::clock() + $this->lease;
        }
        $this->renew($link, $timeout);
    }

    /** @internal Unless this connection has it already. */
    public function attach(Connection $link, float $timeout): void
    {
        if ($this->on !== $link && !$this->isLost) {
            $this->renew($link, $timeout);
        }
    }

    /**
     * @internal Asks whether latchd has it. A hold with a lease is only confirmed, for what is left of it.
     * @throws LatchdError when nobody can say so
     */
    public function renew(Connection $link, float $timeout): void
    {
        $sent = Latchd::clock();
        $lease = $this->end === null ? []
            : ['LEASE', Latchd::milliseconds(max(self::LEAST_LEASE_S, $this->end - $sent))];
        $left = INF;
        try {
            if ($this->end !== null && $this->end <= $sent) {
                throw new LockLost('its lease is over', 'NOTHELD');
            }
            foreach ($this->commands('RENEW', ...$lease) as $words) {
                $left = min($left, $link->ask($words, $timeout) / 1000);
            }
        } catch (LockLost) {
            $this->lose();
            return;
        }
        $this->until = min($sent + $left, $this->end ?? INF);
        if ($this->heartbeat !== null && $this->end === null) { // over before latchd gives it on
            $this->until = min($this->until, $sent + $this->heartbeat * self::HEARTBEAT_PART);
        }
        $this->on = $link;
        $this->isUncertain = false;
    }

    /** @internal Nobody can say whether it is held. */
    public function doubt(): void
    {
        if (!$this->isUncertain && !$this->isLost) {
            $this->isUncertain = true;
            $this->latchd->say($this->name() . ' is uncertain: no renewal is confirmed');
        }
        if ($this->until <= Latchd::clock()) {
            $this->lose();
        }
    }

    /** @internal */
    public function lose(): void
    {
        if (!$this->isLost) {
            $this->isLost = true;
            $this->latchd->forget($this);
            if (!$this->isReleased) {
                $this->latchd->say($this->name() . ' is lost');
            }
        }
    }

    private function isOver(): bool
    {
        return $this->isReleased || $this->isLost || $this->pid !== getmypid();
    }
}
