<?php
// For programs without Composer: require this file.
declare(strict_types=1);

spl_autoload_register(function (string $class): void {
    if (!str_starts_with($class, 'Latchd\\')) {
        return;
    }
    $file = __DIR__ . strtr(substr($class, strlen('Latchd')), '\\', '/') . '.php';
    require_once is_file($file) ? $file : __DIR__ . '/errors.php';
});
