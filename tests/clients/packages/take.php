<?php
// Takes a lock with the installed package: take.php URL NAME. Prints the token; gives it back at the end of its input.
require 'vendor/autoload.php';
@include_once 'Predis/autoload.php';

(new Latchd\Latchd($argv[1]))->with($argv[2], function ($lock) {
    echo "{$lock->token}\n";
    stream_get_contents(STDIN);
}, wait: 10);
