<?php
declare(strict_types=1);

namespace Latchd;

/** @internal */
final class PhpRedisConnection extends Connection
{
    private \Redis $redis;

    protected function __construct(array $address, array $tls, float $timeout)
    {
        $this->redis = new \Redis();
        error_clear_last();
        try {
            match ($address['scheme']) { // PHP warns of a certificate that is wrong; the exception does not have it
                'unix' => $this->redis->connect($address['path'], 0, $timeout, null, 0, $timeout),
                'rediss' => @$this->redis->connect("tls://$address[host]", $address['port'], $timeout, null, 0, $timeout,
                    ['stream' => $tls]),
                default => $this->redis->connect($address['host'], $address['port'], $timeout, null, 0, $timeout),
            };
            $this->redis->setOption(\Redis::OPT_MAX_RETRIES, 0);
        } catch (\RedisException $error) {
            $more = error_get_last()['message'] ?? '';
            throw new Unreachable(trim($error->getMessage() . " $more"), 'UNREACHABLE', $error);
        }
    }

    public function close(): void
    {
        $this->redis->close();
    }

    protected function setTimeout(float $seconds): void
    {
        $this->redis->setOption(\Redis::OPT_READ_TIMEOUT, $seconds);
    }

    /** phpredis throws most errors of latchd as if the connection had failed, and returns false for null. */
    protected function send(array $words): mixed
    {
        $thrown = null;
        try {
            $this->redis->clearLastError();
            $reply = $this->redis->rawCommand(...array_map(strval(...), $words));
        } catch (\RedisException $thrown) {
            $reply = false;
        }
        $error = $this->redis->getLastError();
        if ($error === null && $thrown !== null) {
            throw new Unreachable($thrown->getMessage(), 'UNREACHABLE', $thrown);
        }
        if ($error !== null) {
            throw self::toError($error, $thrown);
        }
        return $reply === false ? null : $reply;
    }
}
