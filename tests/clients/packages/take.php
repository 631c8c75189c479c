<?php
// Takes a lock with the installed package: take.php URL NAME. Prints the token; gives it back at the end of its input.
require 'vendor/autoload.php';
@include_once 'Predis/autoload.php';

$url = parse_url($argv[1]);
$client = new Predis\Client(['host' => $url['host'], 'port' => $url['port']]);
(new Latchd\Latchd($client))->with($argv[2], function ($lock) {
    echo "{$lock->token}\n";
    stream_get_contents(STDIN);
}, wait: 10);
