<?php
// Symfony Lock with its RedisStore, over phpredis. latchd refuses its scripts, which keep locks in sorted sets.
require 'Symfony/Component/Lock/autoload.php';
require __DIR__ . '/host.php';

use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;

class SymfonyLocks {
    private LockFactory $factory;

    public function __construct($host, $port) {
        $redis = new Redis();
        $redis->connect($host, $port);
        $this->factory = new LockFactory(new RedisStore($redis));
    }

    public function acquire($name, $lease, $wait) {
        $lock = $this->factory->createLock($name, $lease);
        return $lock->acquire($wait > 0) ? $lock : null;
    }

    public function release($lock) {
        $lock->release();
        return true;
    }
}

serve(fn($host, $port) => new SymfonyLocks($host, $port));
