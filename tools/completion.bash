# Completion of cutelua for bash. Commands and options come from the program's
# own --help, which takes 5 ms.

# Print the options and commands that a --help lists.
_cutelua_options() { sed -n 's/^  \(--\{0,1\}[a-z][a-z-]*\).*/\1/p'; }
_cutelua_commands() { "$1" --help 2>/dev/null | sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p'; }

_cutelua() {
  local exe=$1 word=${COMP_WORDS[COMP_CWORD]} command= i IFS=$' \t\n'
  local words=
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      -e | -l) i=$((i + 1)) ;;
      -*) ;;
      *) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  local commands; commands=$(_cutelua_commands "$exe")
  case " ${commands//$'\n'/ } " in
    *" $command "*) ;;
    *) command=${command:+script} ;;  # a script has options of its own
  esac
  case $command,$word in
    ,-*) words=$("$exe" --help 2>/dev/null | _cutelua_options) ;;
    ,*) words=$commands ;;
    script,*) ;;
    doc,*) words=$("$exe" doc --names 2>/dev/null) ;;
    *,-*) words=$("$exe" "$command" --help 2>/dev/null | _cutelua_options) ;;
  esac
  IFS=$'\n'  # a file's name may have blanks
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  case $command,$word in
    doc,* | *,-*) ;;
    *) COMPREPLY+=($(compgen -f -- "$word")) ;;
  esac
}
complete -o filenames -F _cutelua cutelua
