<?php
// Locks of latchd for PHP, over a connected phpredis or Predis client: README.md.
//
// PHP does nothing in the background, so latchd itself renews a hold while the connection is open.
// When a connection broke, the next call opens another one and attaches the hold to it.
declare(strict_types=1);

namespace Latchd;

class LatchdError extends \RuntimeException
{
    /** @param string $kind the first word of latchd's error, such as NOPERM */
    public function __construct(public readonly string $kind, string $message, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }
}

/** Somebody else has the lock. */
final class LockTimeout extends LatchdError
{
}

/** The hold is gone: stop the work. */
final class LockLost extends LatchdError
{
}

/** No latchd has answered, or its Redis is out of reach. */
final class Unreachable extends LatchdError
{
}

final class Latchd
{
    /** A call waits no longer than this: below the read timeout that clients commonly have. */
    private const SLICE_S = 1.5;
    private const PAUSE_US = 50_000;
    private const IN_SECONDS = ['lease', 'grace', 'keep', 'heartbeat', 'atleast'];

    /** @param float $patience seconds without an answer of latchd after which a call fails */
    public function __construct(
        private readonly \Redis|\Predis\ClientInterface $client,
        private readonly float $patience = 30.0,
    ) {
    }

    /**
     * Takes a lock. `wait`, in seconds: null waits for ever, 0 tries once.
     *
     * `options` are those of LOCK in latchd-protocol(7), such as ['fair' => true, 'owner' => 'ann',
     * 'grace' => 0.5]; times are seconds. `id` names the request: the same one again finds its hold.
     *
     * @throws LockTimeout when somebody else has the lock after that time
     */
    public function lock(string $name, ?float $wait = null, array $options = [], ?string $id = null): Lock
    {
        $lock = $this->tryLock($name, $wait ?? INF, $options, $id);
        return $lock ?? throw new LockTimeout('TIMEOUT', "somebody else has the lock '$name'");
    }

    /** The same; null when somebody else has the lock after `wait`. */
    public function tryLock(string $name, float $wait = 0.0, array $options = [], ?string $id = null): ?Lock
    {
        $id ??= bin2hex(random_bytes(16));
        $words = $this->words($options + ($wait <= 0 ? ['keep' => 0] : []));
        $end = self::clock() + $wait;
        do {
            $began = self::clock();
            $slice = max(0.0, min($end - $began, self::SLICE_S));
            $token = $this->ask('LOCK', $name, 'WAIT', (int)ceil($slice * 1000), 'ID', $id, ...$words);
        } while ($token === null && self::clock() < $end);
        if ($token !== null) {
            return new Lock($this, $name, $id, $token, isset($options['lease']) ? $began + $options['lease'] : null);
        }
        if ($wait > 0) {
            $this->ask('CANCEL', $name, 'ID', $id); // leaves no place in the queue behind
        }
        return null;
    }

    /**
     * Calls `work` with the lock, and releases it. Returns what `work` returns.
     *
     * @throws LockLost when the lock was lost before the end of the work
     */
    public function with(string $name, callable $work, ?float $wait = null, array $options = []): mixed
    {
        $lock = $this->lock($name, $wait, $options);
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

    /** The hold that a request has taken, perhaps in another process: asks nothing yet. */
    public function attach(string $name, string $id): Lock
    {
        return new Lock($this, $name, $id, null, null);
    }

    /** The IDs, or owners, that hold the name now. */
    public function holders(string $name): array
    {
        $info = $this->ask('LOCKINFO', $name);
        $holds = $info[array_search('holds', $info, true) + 1];
        return array_map(
            fn (array $hold) => preg_replace('/^latchd:id:/', '', $hold[array_search('owner', $hold, true) + 1]),
            $holds,
        );
    }

    /** Takes the lock away from its holder. */
    public function forceUnlock(string $name): bool
    {
        return $this->ask('FORCEUNLOCK', $name, 'ANY') === 1;
    }

    /**
     * The reply to a command. Sent again while no latchd answers, or its Redis is out of reach: only
     * what has an ID, or changes nothing, goes through here more than once without harm.
     */
    public function ask(string $command, string|int ...$words): mixed
    {
        for ($end = self::clock() + $this->patience;; usleep(self::PAUSE_US)) {
            try {
                return $this->client instanceof \Redis ? $this->askPhpredis($command, ...$words)
                    : $this->askPredis($command, ...$words);
            } catch (Unreachable $error) {
                if (self::clock() >= $end) {
                    throw $error;
                }
            }
        }
    }

    /** Seconds of a clock that nobody sets. */
    public static function clock(): float
    {
        return hrtime(true) / 1e9;
    }

    private function words(array $options): array
    {
        $words = [];
        foreach ($options as $option => $value) {
            $option = strtolower($option);
            if ($value === false || $value === null) {
                continue;
            }
            $words[] = strtoupper($option);
            if ($value !== true) {
                $words[] = in_array($option, self::IN_SECONDS, true) ? (int)round($value * 1000) : $value;
            }
        }
        return $words;
    }

    private function askPhpredis(string|int ...$words): mixed
    {
        try {
            $this->client->clearLastError();
            $reply = $this->client->rawCommand(...$words);
            $error = $this->client->getLastError();
        } catch (\RedisException $thrown) { // which it throws for most errors that latchd answers as well
            $error = $thrown->getMessage();
        }
        if ($error !== null) {
            throw self::error($error, $thrown ?? null);
        }
        return $reply === false ? null : $reply;
    }

    private function askPredis(string|int ...$words): mixed
    {
        try {
            $reply = $this->client->executeRaw($words, $failed);
        } catch (\Predis\CommunicationException $thrown) {
            throw self::error($thrown->getMessage(), $thrown);
        }
        return $failed ? throw self::error($reply, null) : $reply;
    }

    /** Of latchd if it begins with a word in capitals, else of the connection. */
    private static function error(string $text, ?\Throwable $why): LatchdError
    {
        $kind = preg_match('/^[A-Z]+(?= |$)/', $text, $match) ? $match[0] : 'UNREACHABLE';
        return match (true) {
            $kind === 'UNREACHABLE', $kind === 'BACKEND', $kind === 'GOAWAY' => new Unreachable($kind, $text, $why),
            $kind === 'NOTHELD' => new LockLost($kind, $text, $why),
            str_contains($text, 'unknown command') => new LatchdError('NOTLATCHD', "this is no latchd: $text", $why),
            default => new LatchdError($kind, $text, $why),
        };
    }
}
