# fish completion for latchctl(1): subcommands, options, and the names of locks.

set -g __latchctl_valued @valued@
set -g __latchctl_target @target@
set -g __latchctl_target_valued @target_valued@

# The words before the cursor that are no options: the subcommand, the name, -- and others.
function __latchctl_words
    set -l skip 0
    set -l tokens (commandline -opc)
    for token in $tokens[2..-1]
        if test $skip = 1
            set skip 0
        else if contains -- $token $__latchctl_valued
            set skip 1
        else if not string match -q -- '-?*' $token; or test "$token" = --
            echo $token
        end
    end
end

function __latchctl_needs_command
    test (count (__latchctl_words)) = 0
end

# Whether the subcommand is one of these; without any, whether an option would be latchctl's.
function __latchctl_is
    set -l words (__latchctl_words)
    if contains -- -- $words; or test (count $words) -gt 2 -a "$words[1]" = run
        return 1
    end
    test -z "$argv"; or contains -- "$words[1]" $argv
end

function __latchctl_needs_name
    set -l words (__latchctl_words)
    test (count $words) = 1; and not contains -- $words[1] top ls
end

function __latchctl_needs_action
    test (count (__latchctl_words)) = 2; and __latchctl_is latch
end

# After the name of `run`, or after `--`.
function __latchctl_needs_program
    set -l words (__latchctl_words)
    test (count $words) -ge 2 -a "$words[1]" = run
end

# The names that latchd knows, if it answers at once.
function __latchctl_names
    set -l tokens (commandline -opc)
    set -l where
    set -l take 0
    for token in $tokens[2..-1]
        if test $take = 1
            set -a where $token
            set take 0
        else if contains -- (string replace -r '=.*' '' -- $token) $__latchctl_target
            set -a where $token
            contains -- $token $__latchctl_target_valued; and set take 1
        end
    end
    set -l typed (commandline -ct | string unescape | string replace -ra '([\\\\*?\[])' '\\\\$1')
    timeout 1 latchctl $where ls --count 200 --match "$typed*" 2>/dev/null | string match -rv '[[:cntrl:]]'
end

complete -c latchctl -f
complete -c latchctl -n __latchctl_needs_name -a '(__latchctl_names)'
complete -c latchctl -n __latchctl_needs_action -a 'set count await delete info'
complete -c latchctl -n __latchctl_needs_program -a '(__fish_complete_subcommand --fcs-skip=3 $__latchctl_valued)'
@fish@
