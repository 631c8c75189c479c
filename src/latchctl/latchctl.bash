# bash completion for latchctl(1): subcommands, options, and the names of locks.

# The names that latchd knows, if it answers at once. Glob characters in what was typed
# are taken as they are.
_latchctl_names() {
    local typed=$1 name
    shift
    local pattern=${typed//\\/\\\\}
    pattern=${pattern//\*/\\*}
    pattern=${pattern//\?/\\?}
    pattern=${pattern//\[/\\[}
    while IFS= read -r name; do
        [[ $name == "$typed"* && $name != *[[:cntrl:]]* ]] && printf '%s\n' "$name"
    done < <(timeout 1 latchctl "$@" ls --count 200 --match "$pattern*" 2>/dev/null)
}

# Escaped for the shell, so that a name stays one word, whatever is in it.
_latchctl_offer_names() {
    local name
    while IFS= read -r name; do
        COMPREPLY+=("$(printf '%q' "$name")")
    done < <(_latchctl_names "$@")
}

_latchctl_offer() {
    local word
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(compgen "${@:2}" -- "$1")
}

# The command of `run`, which begins at the word $1, as it is completed without us.
_latchctl_command() {
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif (($1 == $2)); then
        _latchctl_offer "$3" -c
    else
        _latchctl_offer "$3" -f
    fi
}

_latchctl() {
    local cur prev cword
    local -a words
    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref -n := cur prev words cword
    else
        words=("${COMP_WORDS[@]}")
        cword=$COMP_CWORD
        cur=${words[cword]}
        prev=${words[cword-1]}
    fi
    local common='@common@'
    local valued=' @valued@ '
    local target=' @target@ '
    local command='' name='' i word
    local -a where=()
    COMPREPLY=()

    for ((i = 1; i < cword; i++)); do
        word=${words[i]}
        if [[ $word == -- || ($word != -* && -n $name) ]]; then
            [[ $word == -- ]] && ((i++))
            [[ $command == run && -n $name ]] && _latchctl_command "$i" "$cword" "$cur"
            return
        elif [[ $valued == *[[:space:]]"$word"[[:space:]]* ]]; then
            ((i++))
            [[ $target == *[[:space:]]"$word"[[:space:]]* ]] && where+=("$word" "${words[i]}")
        elif [[ $word == -* ]]; then
            [[ $target == *[[:space:]]"${word%%=*}"[[:space:]]* ]] && where+=("$word")
        elif [[ -z $command ]]; then
            command=$word
        elif [[ $command != top && $command != ls ]]; then
            name=$word
        fi
    done

    case $prev in
        @take FILE@)
            _latchctl_offer "$cur" -f
            return ;;
        @take DIR@)
            _latchctl_offer "$cur" -d
            return ;;
        @take HOST@)
            _latchctl_offer "$cur" -A hostname
            return ;;
        @take ORDER@)
            _latchctl_offer "$cur" -W 'waiters wait held name'
            return ;;
        -*)
            [[ $valued == *[[:space:]]"$prev"[[:space:]]* ]] && return ;;
    esac

    if [[ $cur == -* ]]; then
        case $command in
            @cases@
        esac
        _latchctl_offer "$cur" -W "$common"
    elif [[ -z $command ]]; then
        _latchctl_offer "$cur" -W '@commands@'
    elif [[ -z $name && $command != top && $command != ls ]]; then
        _latchctl_offer_names "$cur" "${where[@]}"
        declare -F __ltrim_colon_completions >/dev/null && __ltrim_colon_completions "$cur"
    elif [[ $command == latch ]]; then
        _latchctl_offer "$cur" -W 'set count await delete info'
    elif [[ $command == run ]]; then
        _latchctl_command "$cword" "$cword" "$cur"
    fi
}

complete -F _latchctl latchctl
