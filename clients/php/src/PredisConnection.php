<?php
declare(strict_types=1);

namespace Latchd;

/** @internal */
final class PredisConnection extends Connection
{
    private \Predis\Client $redis;

    protected function __construct(array $address, array $tls, float $timeout)
    {
        $this->redis = new \Predis\Client([
            'scheme' => ['redis' => 'tcp', 'rediss' => 'tls', 'unix' => 'unix'][$address['scheme']],
            'host' => $address['host'],
            'port' => $address['port'],
            'path' => $address['path'],
            'ssl' => $tls,
            'timeout' => $timeout,
            'read_write_timeout' => $timeout,
        ]);
        try {
            @$this->redis->connect(); // PHP warns of a certificate that is wrong, and then it throws
        } catch (\Predis\CommunicationException $error) {
            throw new Unreachable($error->getMessage(), 'UNREACHABLE', $error);
        }
    }

    public function close(): void
    {
        $this->redis->disconnect();
    }

    protected function setTimeout(float $seconds): void
    {
        $stream = $this->redis->getConnection()->getResource();
        if (!is_resource($stream)) { // of which the timeout cannot be set
            throw new \LogicException('latchd needs phpredis, or Predis before version 3');
        }
        stream_set_timeout($stream, (int)$seconds, (int)(fmod($seconds, 1) * 1e6));
    }

    protected function send(array $words): mixed
    {
        $failed = false;
        try {
            $reply = $this->redis->executeRaw(array_map(strval(...), $words), $failed);
        } catch (\Predis\CommunicationException $error) {
            throw new Unreachable($error->getMessage(), 'UNREACHABLE', $error);
        }
        return $failed ? throw self::toError($reply) : $reply;
    }
}
