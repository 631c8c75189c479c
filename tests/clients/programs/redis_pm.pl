# latchd from Redis.pm.
#
# redis_pm.pl HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../README.md
use strict;
use warnings;
use Redis;

my ($host, $port, $protocol, $user, $password, $ca, $name, @scenarios) = @ARGV;
$| = 1;

sub connection {
    my %options = (server => "$host:$port");
    $options{username} = $user if $user ne '-';
    $options{password} = $password if $password ne '-';
    if ($ca ne '-') {
        require IO::Socket::SSL;
        IO::Socket::SSL::set_defaults(SSL_ca_file => $ca); # Redis.pm does not pass it on
        $options{ssl} = 1;
    }
    return Redis->new(%options);
}

my $latchd = connection();

# Redis.pm makes a method of any name into a command.
sub ask {
    my ($command, @words) = @_;
    my $method = lc $command;
    return scalar $latchd->$method(@words);
}

sub check {
    my ($good, $got) = @_;
    die 'unexpected: ', $got // 'undef', "\n" unless $good;
}

# The error that this must be answered with.
sub refused {
    my ($wanted, @words) = @_;
    my $answer = eval { ask(@words) };
    check($@ =~ /\[\w+\] \Q$wanted\E/i, $@ || $answer);
}

my %run;

$run{version} = sub { print "version $Redis::VERSION\n" };

$run{hello} = sub {
    check($latchd->ping eq 'PONG');
    my $token = ask('LOCK', $name, 'WAIT', 0);
    check($token > 2**31, $token);
    check(ask('UNLOCK', $name, 'TOKEN', $token) == 0);
};

$run{busy} = sub {
    my $token = ask('LOCK', $name);
    check(!defined ask('LOCK', $name, 'WAIT', 0));
    check(!defined ask('LOCK', $name, 'WAIT', 50));
    check(ask('RENEW', $name, 'TOKEN', $token) > 0);
    check(ask('UNLOCK', $name, 'TOKEN', $token) == 0);
    check(ask('LOCK', $name, 'FAIR', 'WAIT', 0) > $token);
    check(ask('UNLOCK', $name) == 0);
};

$run{reenter} = sub {
    my $token = ask('LOCK', $name, 'OWNER', 'ann');
    check(ask('LOCK', $name, 'OWNER', 'ann') == $token);
    check(ask('UNLOCK', $name, 'OWNER', 'ann') == 1);
    check(ask('UNLOCK', $name, 'OWNER', 'ann') == 0);
};

$run{lose} = sub {
    my $token = ask('LOCK', $name);
    check(ask('FORCEUNLOCK', $name, 'TOKEN', $token) == 1);
    refused('NOTHELD ', 'UNLOCK', $name, 'TOKEN', $token);
    refused('NOTHELD ', 'RENEW', $name, 'TOKEN', $token);
    refused('ERR unknown option', 'LOCK', $name, 'SOON');
};

$run{share} = sub {
    my @tokens = (ask('LOCK', $name, 'READ'), ask('LOCK', $name, 'READ'));
    check(!defined ask('LOCK', $name, 'WRITE', 'WAIT', 0));
    check(ask('UNLOCK', $name, 'TOKEN', $_) == 0) for @tokens;
    my $token = ask('LOCK', $name, 'WRITE', 'WAIT', 0);
    check(ask('UNLOCK', $name, 'TOKEN', $token) == 0);
};

# A command with a function at its end is sent without waiting for the one before it.
$run{pipeline} = sub {
    my @replies;
    my $collect = sub { push @replies, $_[0] };
    $latchd->lock($name . $_, 'WAIT', 0, $collect) for 1, 2, 1;
    $latchd->wait_all_responses;
    check($replies[0] > 0 && $replies[1] > 0 && !defined $replies[2], "@replies[0, 1]");
    $latchd->unlock($name . $_, 'TOKEN', $replies[$_ - 1], $collect) for 1, 2;
    $latchd->wait_all_responses;
    check($replies[3] == 0 && $replies[4] == 0);
};

$run{multi} = sub {
    $latchd->multi;
    ask('LOCK', $name, 'WAIT', 0) for 1, 2;
    my ($token, $none) = $latchd->exec;
    check($token > 0 && !defined $none, $token);
    check(ask('UNLOCK', $name, 'TOKEN', $token) == 0);
};

$run{events} = sub {
    my %told;
    my $note = sub { my ($text, $channel) = @_; $told{$channel} = $text };
    my $listener = connection();
    $listener->subscribe("lost:$name", $note);
    $listener->psubscribe("g*:$name", $note);
    my $token = ask('LOCK', $name, 'OWNER', 'joe');
    check(ask('FORCEUNLOCK', $name, 'OWNER', 'joe') == 1);
    while (!defined $told{"lost:$name"}) {
        check($listener->wait_for_messages(5) > 0, 'nothing heard');
    }
    check($told{"granted:$name"} eq "joe $token", $told{"granted:$name"});
    check($told{"lost:$name"} eq "joe $token", $told{"lost:$name"});
};

# Asks until there is a token, on a new connection after an error; the ID keeps the place.
sub insist {
    my ($asked, @words) = @_;
    while (1) {
        $$asked++;
        my $answer = eval { ask(@words) };
        return $answer unless $@;
        die $@ if $@ =~ /^\[\w+\] [A-Z]+ /;
        select undef, undef, undef, 0.05;
        eval { $latchd = connection() };
    }
}

sub wait_for_it {
    my ($request, $patience) = @_;
    my ($token, $asked) = (undef, 0);
    $token = insist(\$asked, 'LOCK', $name, 'WAIT', $patience, 'ID', $request)
        until defined $token;
    print "token $token $asked\n";
    print 'left ', insist(\$asked, 'UNLOCK', $name, 'ID', $request), "\n";
}

if ($scenarios[0] eq 'wait') {
    wait_for_it(@scenarios[1, 2]);
} else {
    for my $scenario (@scenarios) {
        $run{$scenario}->();
        print "ok $scenario\n";
    }
}
