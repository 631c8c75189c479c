<?php
// Locks of latchd for PHP: README.md.
//
// One connection serves a Latchd: PHP does one thing at a time. latchd renews a hold while that connection is open.
// After it broke, the next call opens another one, through the next address if need be, and attaches all holds to it.
// Every request has an ID, and is repeated until it is answered.
declare(strict_types=1);

namespace Latchd;

final class Latchd
{
    /** @internal A wait is made of LOCKs that are this long, so that a dead host is noticed. */
    public const LONGEST_ASK_S = 10.0;
    /** An owner's are longer: latchd finds a deadlock only when they outlast the leases of all who are part of it. */
    private const LONGEST_ASK_OF_OWNER_S = 300.0;
    private const PAUSES_S = [0.05, 1.0]; // between attempts, growing
    private const IN_SECONDS = ['LEASE', 'GRACE', 'KEEP', 'HEARTBEAT', 'ATLEAST'];

    /** @var non-empty-list<string> */
    private array $addresses;
    private int $at = 0;
    private ?Connection $link = null;
    /** @var array<string, Lock> by ID */
    private array $held = [];
    private int $pid;

    /**
     * @param string|list<string> $addresses such as redis://host:5625, rediss:// with TLS, unix:///path
     * @param float $timeout seconds without an answer after which a connection is given up
     * @param float $patience seconds without latchd after which a wait fails
     * @param ?string $library phpredis or predis; null: phpredis if the extension is loaded
     * @param ?\Closure(string): void $log is given a line when a hold becomes uncertain or is lost
     * @param array{user?: string, password?: string, tls?: array<string, mixed>} $options tls: of a stream context
     */
    public function __construct(
        string|array $addresses,
        private readonly float $timeout = 5.0,
        private readonly float $patience = 30.0,
        private readonly ?string $library = null,
        private readonly ?\Closure $log = null,
        #[\SensitiveParameter] private readonly array $options = [],
    ) {
        $this->addresses = array_values((array)$addresses)
            ?: throw new \InvalidArgumentException("latchd's address is missing");
        $this->pid = getmypid();
    }

    /**
     * Takes a lock, or several, all or none. Null: somebody else has it after `wait` seconds (null: no end).
     *
     * Options are those of LOCK in latchd-protocol(7), by name: fair: true, read: true, permits: 1, of: 3,
     * owner: 'ann', and in seconds lease, grace, keep, heartbeat and atLeast, with which nothing is waited for.
     *
     * @param string|list<string> $name
     */
    public function lock(string|array $name, ?float $wait = null, mixed ...$options): ?Lock
    {
        $isGiven = fn (mixed $value) => $value !== null && $value !== false;
        $options = array_filter(array_change_key_case($options, CASE_UPPER), $isGiven);
        $kind = array_values(array_intersect(['READ', 'WRITE'], array_keys($options)));
        $wait ??= isset($options['ATLEAST']) ? 0.0 : INF;
        $deadline = self::deadline($wait);
        do {
            $lock = new Lock($this, array_values((array)$name), self::newId(), $kind,
                $options['LEASE'] ?? null, $options['HEARTBEAT'] ?? null);
            try {
                return $this->acquire($lock, $options, $deadline) ? $lock : null;
            } catch (LockLost $lost) { // the request is over: freed by force, or lost on its way
                $this->abandon($lock);
            }
        } while (self::clock() < $deadline);
        return null;
    }

    /**
     * Calls the work with the lock, releases it, and returns what the work returned.
     *
     * @param string|list<string> $name
     * @param callable(Lock): mixed $work
     * @throws LockTimeout if somebody else has the lock after `wait` seconds
     * @throws LockLost if the lock was lost before the end of the work
     */
    public function with(string|array $name, callable $work, ?float $wait = null, mixed ...$options): mixed
    {
        $lock = $this->lock($name, $wait, ...$options)
            ?? throw new LockTimeout('somebody else has ' . implode(' and ', (array)$name), 'TIMEOUT');
        try {
            $result = $work($lock);
        } catch (\Throwable $error) {
            try {
                $lock->release();
            } catch (LatchdError) {
                // The error of the work says more.
            }
            throw $error;
        }
        $lock->release();
        return $result;
    }

    /**
     * The hold of a request, perhaps of another process, which this process keeps from now on. Null: it is over.
     *
     * @param ?float $lease from now on, in seconds; null: latchd renews it
     */
    public function restore(string $name, string $id, ?float $lease = null): ?Lock
    {
        $lock = new Lock($this, [$name], $id, [], $lease, null);
        $more = $lease === null ? [] : ['LEASE', self::milliseconds($lease)];
        $deadline = self::clock() + $this->patience;
        try {
            $this->retry(function () use ($lock, $more) {
                $this->ask($lock->commands('RENEW', ...$more)[0]);
                $this->begin($lock, [$this->tokenOf($lock)]); // which asks again whether it is that request's
            }, $deadline);
            return $lock;
        } catch (LockLost) {
            return null;
        }
    }

    /** That a hold of this process has, whatever options it was taken with. */
    private function tokenOf(Lock $lock): int
    {
        $holds = self::toMap($this->ask(['LOCKINFO', $lock->names[0]]))['holds'] ?? [];
        $holds = array_column(array_map(self::toMap(...), $holds), 'token', 'owner');
        return $holds["latchd:id:$lock->id"] // or of a named owner, who has it alone
            ?? (count($holds) === 1 ? reset($holds) : null)
            ?? throw new LatchdError("latchd does not tell the token of {$lock->name()}");
    }

    /**
     * Whether anybody holds the name now, or one of several. A name that rests after `atLeast` counts as held.
     *
     * @param string|list<string> $name
     * @throws Backend where nobody can know, or latchd grants the name to nobody for now
     */
    public function isLocked(string|array $name): bool
    {
        foreach ((array)$name as $one) {
            $state = $this->info($one, 0.0)['state'];
            if ($state === 'withheld') {
                throw new Backend("latchd grants $one to nobody for now, and a hold of it may come back", 'BACKEND');
            }
            // Only the latchd that has a name on loan knows whether somebody holds it.
            if ($state === 'lent' ? $this->insist(['LEADER', $one], 0.0, 0.0)[1] !== '' : $state !== 'free') {
                return true;
            }
        }
        return false;
    }

    /** The answer of LOCKINFO: a map, with a list of maps in `holds`. */
    public function info(string $name, ?float $patience = null): array
    {
        $info = self::toMap($this->insist(['LOCKINFO', $name], 0.0, $patience));
        return ['holds' => array_map(self::toMap(...), $info['holds'] ?? [])] + $info;
    }

    /** Takes the name away from its holder. False: there was none. */
    public function forceUnlock(string $name): bool
    {
        $this->insist(['PING']);
        return $this->ask(['FORCEUNLOCK', $name, 'ANY']) === 1; // once: the next holder may have it then
    }

    /**
     * The leader, who holds the name alone: now, and each time that it changes. Token 0: nobody leads.
     *
     * @return \Generator<int, array{token: int, owner: string, data: string}>
     */
    public function follow(string $name): \Generator
    {
        for ($last = null;; $last = $leader) {
            do {
                $after = $last === null ? [] : ['AFTER', $last['token'], 'WAIT', self::milliseconds(self::LONGEST_ASK_S)];
                [$token, $owner, $data] = $this->insist(['LEADER', $name, ...$after], self::LONGEST_ASK_S, INF);
                $leader = ['token' => (int)$token, 'owner' => (string)$owner, 'data' => (string)$data];
            } while ($last !== null && $last['token'] === $leader['token'] && $last['owner'] === $leader['owner']);
            yield $leader;
        }
    }

    /** A latch, which others count down. */
    public function latch(string $name): Latch
    {
        return new Latch($this, $name);
    }

    /** Seconds, of a clock that runs during suspend where the system has one. @internal */
    public static function clock(): float
    {
        static $hasUptime = null;
        $uptime = $hasUptime === false ? false : @file_get_contents('/proc/uptime');
        $hasUptime ??= $uptime !== false;
        return $hasUptime && $uptime !== false ? (float)$uptime : hrtime(true) / 1e9;
    }

    /** Not before so many seconds are over, though the clock stands still for a hundredth of one. @internal */
    public static function deadline(float $seconds): float
    {
        return self::clock() + ($seconds > 0 ? $seconds + 0.01 : 0.0);
    }

    /** @internal */
    public static function newId(): string
    {
        return bin2hex(random_bytes(16));
    }

    /** @internal */
    public static function milliseconds(float $seconds): int
    {
        return (int)ceil(round($seconds * 1000, 3));
    }

    /** @internal */
    public function say(string $line): void
    {
        ($this->log)?->__invoke($line);
    }

    /** @internal It is attached to no further connection. */
    public function forget(Lock $lock): void
    {
        unset($this->held[$lock->id]);
    }

    /** @internal Over the connection that there is, or a new one. Not repeated. */
    public function ask(array $words, float $longer = 0.0): mixed
    {
        $link = $this->link();
        try {
            return $link->ask($words, $longer + $this->timeout);
        } catch (Unreachable $error) {
            $this->leave();
            throw $error;
        }
    }

    /** @internal Asks until latchd has answered, or patience is over: for what does no harm when it comes twice. */
    public function insist(array $words, float $longer = 0.0, ?float $patience = null): mixed
    {
        $deadline = self::clock() + ($patience ?? $this->patience);
        return $this->retry(fn () => $this->ask($words, $longer), $deadline);
    }

    /** @internal Asks whether latchd has the hold. */
    public function confirm(Lock $lock): void
    {
        for ($tries = count($this->addresses); $tries >= 0; $tries--) {
            $left = $lock->secondsLeft();
            $within = $left > 0 ? min($this->timeout, max(1.0, $left / 3)) : $this->timeout;
            $wasOpen = $this->link !== null;
            try {
                $lock->renew($this->link(), $within);
                return;
            } catch (Unreachable) {
                $this->leave();
                if (!$wasOpen) { // no address answers
                    break;
                }
            } catch (LatchdError) {
                break;
            }
        }
        $lock->doubt();
    }

    /** @internal Ends the hold of each name, for as long as `timeout` allows. */
    public function release(Lock $lock, array $commands): void
    {
        $this->forget($lock);
        $deadline = self::clock() + $this->timeout;
        foreach ($commands as $words) {
            try {
                $this->retry(fn () => $this->ask($words), $deadline, false);
            } catch (LockLost) {
                $lock->lose();
            } catch (Backend) {
                // latchd releases it as soon as its Redis answers.
            }
        }
    }

    /** @throws LockLost */
    private function acquire(Lock $lock, array $options, float $deadline): bool
    {
        $command = count($lock->names) > 1 ? ['MLOCK', count($lock->names)] : ['LOCK'];
        $words = [];
        foreach ($options as $option => $value) {
            $words[] = $option;
            if ($value !== true) {
                $words[] = in_array($option, self::IN_SECONDS, true) ? self::milliseconds($value) : $value;
            }
        }
        $began = $reached = self::clock();
        $isOwned = isset($options['OWNER']);
        $isKept = isset($options['KEEP']);
        $isSent = false;
        try {
            do {
                $giveUp = min($deadline, $reached + $this->patience);
                $granted = $this->retry(function () use ($lock, $command, $words, $deadline, $isOwned, $isKept, &$giveUp,
                    &$isSent) {
                    $this->link();
                    $isSent = true;
                    $sent = self::clock();
                    $left = max(0.0, $deadline - $sent);
                    $slice = min($left, $isOwned ? self::LONGEST_ASK_OF_OWNER_S : self::LONGEST_ASK_S);
                    $more = ['WAIT', self::milliseconds($slice), ...$slice == 0 && !$isKept ? ['KEEP', 0] : []];
                    try {
                        $tokens = $this->ask([...$command, ...$lock->names, ...$words, ...$more, 'ID', $lock->id], $slice);
                    } catch (Unreachable $error) {
                        if ($isOwned && self::clock() < $sent + $slice) { // it was there until now
                            $giveUp = min($deadline, self::clock() + $this->patience);
                        }
                        throw $error;
                    }
                    if ($tokens !== null) {
                        $this->begin($lock, (array)$tokens);
                    }
                    return $tokens !== null;
                }, $giveUp);
                $reached = self::clock();
            } while (!$granted && $reached < $deadline);
        } catch (\Throwable $error) {
            if ($isSent && !$error instanceof LockLost) {
                $this->abandon($lock);
            }
            throw $error;
        }
        if (!$granted && ($deadline > $began || $isKept)) {
            $this->abandon($lock);
        }
        return $granted;
    }

    private function begin(Lock $lock, array $tokens): void
    {
        $link = $this->link();
        try {
            $lock->begin($link, $tokens, $this->timeout);
        } catch (Unreachable $error) {
            $this->leave();
            throw $error;
        }
        if ($lock->secondsLeft() <= 0) {
            throw new LockLost($lock->name() . ' was lost at once', 'NOTHELD');
        }
        if (!$lock->isLeased()) { // which no connection has to keep
            $this->held[$lock->id] = $lock;
        }
    }

    /** Ends the wait, and a grant that came in the same moment. */
    private function abandon(Lock $lock): void
    {
        try {
            foreach ([['CANCEL', $lock->names[0], 'ID', $lock->id], ...$lock->commands('UNLOCK')] as $words) {
                try {
                    $this->ask($words);
                } catch (LockLost) {
                    // There was none.
                }
            }
        } catch (LatchdError) {
            // The place ends by its KEEP.
        }
    }

    /**
     * Until it is done, or the deadline, which the work may move, is over: while no latchd answers, and through outages of
     * its Redis.
     */
    private function retry(callable $work, float &$deadline, bool $throughOutages = true): mixed
    {
        for ($pause = self::PAUSES_S[0];; $pause = min(2 * $pause, self::PAUSES_S[1])) {
            $wasOpen = $this->link !== null;
            try {
                return $work();
            } catch (Unreachable | Backend $error) {
                if ($error instanceof Backend && !$throughOutages) {
                    throw $error;
                }
                $left = $deadline - self::clock();
                // That a connection broke while it lay idle says nothing yet.
                if ($left <= 0 && !($wasOpen && $error instanceof Unreachable)) {
                    throw $error;
                }
                usleep((int)(1e6 * max(0.0, min($pause, $left))));
            }
        }
    }

    /** The connection, with all holds attached to it. */
    private function link(): Connection
    {
        if ($this->pid !== getmypid()) { // a fork: the holds and the connection are the parent's
            $this->pid = getmypid();
            $this->link = null;
            $this->held = [];
        }
        if ($this->link?->isBroken) {
            $this->link = null;
        }
        $this->link ??= $this->connect();
        foreach ($this->held as $lock) {
            try {
                $lock->attach($this->link, $this->timeout);
            } catch (Unreachable $error) {
                $this->leave();
                throw $error;
            } catch (LatchdError) {
                // It is tried again before the next command.
            }
        }
        return $this->link;
    }

    /** Through the first address that answers, beginning with the last one that did. */
    private function connect(): Connection
    {
        foreach ($this->addresses as $_) {
            try {
                return Connection::open($this->addresses[$this->at], $this->timeout, $this->library, $this->options);
            } catch (Unreachable $trouble) {
                $this->leave();
            }
        }
        throw $trouble;
    }

    /** The next connection begins with another address, if there is one. */
    private function leave(): void
    {
        $this->link?->close();
        $this->link = null;
        $this->at = ($this->at + 1) % count($this->addresses);
    }

    /** Of RESP2, where a map is a flat list. */
    private static function toMap(array $flat): array
    {
        return array_column(array_chunk($flat, 2), 1, 0);
    }
}
