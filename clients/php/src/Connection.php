<?php
declare(strict_types=1);

namespace Latchd;

/**
 * A connection to one latchd, over phpredis or Predis. It never connects again by itself: a hold has to be
 * attached to each new connection.
 *
 * @internal
 */
abstract class Connection
{
    /** A reply was not read to its end. */
    public bool $isBroken = false;

    /** @param array{scheme: string, host: string, port: int, path: string} $address */
    abstract protected function __construct(array $address, array $tls, float $timeout);

    /** Null where latchd answers null. */
    abstract protected function send(array $words): mixed;

    abstract protected function setTimeout(float $seconds): void;

    /** So that latchd sees its end, though a lock still refers to it. */
    abstract public function close(): void;

    /** @throws Unreachable unless the daemon itself answers, and not only its host */
    public static function open(string $url, float $timeout, ?string $library, array $options): self
    {
        // PHP does not parse a URL without a host.
        $parts = str_starts_with($url, 'unix://') ? ['scheme' => 'unix', 'path' => substr($url, 7)] : parse_url($url);
        if ($parts === false || !in_array($parts['scheme'] ?? '', ['redis', 'rediss', 'unix'], true)) {
            throw new \InvalidArgumentException("no address of latchd: $url");
        }
        $library ??= extension_loaded('redis') ? 'phpredis' : 'predis';
        $address = $parts + ['host' => 'localhost', 'port' => 5625, 'path' => ''];
        $address['host'] = trim($address['host'], '[]'); // of IPv6; phpredis puts them there itself
        // Predis 1 takes options that are not given from the process's other connections.
        $tls = ($options['tls'] ?? []) + ['verify_peer' => true, 'verify_peer_name' => true, 'peer_name' => $address['host']];
        $connection = match ($library) {
            'phpredis' => new PhpRedisConnection($address, $tls, $timeout),
            'predis' => new PredisConnection($address, $tls, $timeout),
        };
        $password = $options['password'] ?? (isset($parts['pass']) ? rawurldecode($parts['pass']) : null);
        if ($password !== null) {
            $user = $options['user'] ?? rawurldecode($parts['user'] ?? '');
            $connection->ask(['AUTH', ...($user === '' ? [] : [$user]), $password], $timeout);
        }
        $connection->ask(['PING'], $timeout);
        return $connection;
    }

    public function ask(array $words, float $within): mixed
    {
        try {
            $this->setTimeout($within);
            return $this->send($words);
        } catch (LatchdError $error) {
            throw $error;
        } catch (\Throwable $error) { // of a signal handler, perhaps: the rest of the reply may still come
            $this->isBroken = true;
            $this->close();
            throw $error;
        }
    }

    protected static function toError(string $text, ?\Throwable $why = null): LatchdError
    {
        $kind = preg_match('/^[A-Z]+(?= |$)/', $text, $match) ? $match[0] : 'ERR';
        return match (true) {
            str_starts_with($text, 'ERR unknown command') =>
                new LatchdError("this is a Redis, not a latchd: $text", 'NOTLATCHD', $why),
            str_starts_with($text, 'ERR gone'), str_starts_with($text, 'ERR no such latch') =>
                new LatchGone($text, 'GONE', $why),
            default => new (match ($kind) {
                'NOTHELD' => LockLost::class,
                'GOAWAY' => Unreachable::class,
                'BACKEND', 'NOREPLICAS' => Backend::class,
                'DEADLOCK' => Deadlock::class,
                'LIMIT' => Limit::class,
                'NOPERM', 'NOAUTH', 'WRONGPASS', 'DENIED' => NoPermission::class,
                'WRONGTYPE' => WrongType::class,
                default => LatchdError::class,
            })($text, $kind, $why),
        };
    }
}
