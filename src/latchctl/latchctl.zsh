#compdef latchctl
# zsh completion for latchctl(1): subcommands, options, and the names of locks.

# The names that latchd knows and that begin as was typed, if it answers at once. $where says
# which latchd.
_latchctl_names() {
    setopt localoptions extendedglob
    local typed=${(Q)PREFIX}
    local -a names
    names=(${(f)"$(timeout 1 latchctl $where ls --count 200 \
        --match "${typed//(#m)[\\*?\[]/\\$MATCH}*" 2>/dev/null)"})
    names=(${names:#*[[:cntrl:]]*})
    _wanted names expl 'lock' compadd -a names
}

_latchctl_commands() {
    local -a commands=(
@zsh_commands@
    )
    _describe -t commands 'subcommand' commands
}

_latchctl() {
    local curcontext=$curcontext context state state_descr line expl command='' name='' word
    typeset -A opt_args
    local -a where options
    local -a valued=(@valued@) target=(@target@)
    integer i program=0 # whether the program of `run` has begun

    for ((i = 2; i < CURRENT; i++)); do
        word=$words[i]
        if [[ $word == -- || ($word != -* && -n $name) ]]; then
            program=1
            break
        elif (($valued[(Ie)$word])); then
            (($target[(Ie)$word])) && where+=($word ${(Q)words[i + 1]})
            ((i++))
        elif [[ $word == -* ]]; then
            (($target[(Ie)${word%%=*}])) && where+=(${(Q)word})
        elif [[ -z $command ]]; then
            command=$word
        else
            name=$word
        fi
    done
    options=(
@zsh_common@
    )
    case $command in
@zsh_cases@
    esac
    case $command in
        '') _arguments -S : $options '1: :_latchctl_commands' ;;
        top | ls) _arguments -S : $options '1: :' ;;
        latch) _arguments -S : $options '1: :' '2: :_latchctl_names' '3:action:(set count await delete info)' ;;
        run)
            if ((program)) || [[ -n $name && $words[CURRENT] != -* ]]; then
                _arguments -S : $options '1: :' '2: :' '*:::command:_normal'
            else
                _arguments -S : $options '1: :' '2: :_latchctl_names'
            fi ;;
        *) _arguments -S : $options '1: :' '2: :_latchctl_names' ;;
    esac
}

_latchctl "$@"
