# Names the capture of a command; sourced by ./quickstart.

# In a capture folder: whose it is, as program_identity says.
IDENTITY_FILE=.quickstart-command

# capture_name WORD...: the name of the program that a command runs: its first .py file, else the
# module behind -m, else its first word; only letters, digits, '.', '_' and '-'.
capture_name() {
  local word before='' name=''
  for word in "$@"; do
    case $word in
      -*) ;;
      *.py) name=${word##*/} name=${name%.py}; break ;;
    esac
    [ "$before" != -m ] || name=$word
    before=$word
  done
  [ -n "$name" ] || { name=${1##*/} name=${name%.*}; }
  name=$(printf '%s' "$name" | LC_ALL=C tr -c 'A-Za-z0-9._-' '_')
  # Neither hidden nor taken for an option.
  name=${name#"${name%%[!.-]*}"}
  printf '%s\n' "${name:-program}"
}

# program_identity FOLDER WORD...: the same text for the same command in the same folder only.
program_identity() { printf '%q ' "$@"; }

# capture_folder PARENT IDENTITY WORD...: PARENT/NAME, or with a hash of the identity behind it where
# that is the capture of another command.
capture_folder() {
  local parent=$1 identity=$2 folder hash
  shift 2
  folder=$parent/$(capture_name "$@")
  if [ -e "$folder" ] && [ "$(cat "$folder/$IDENTITY_FILE" 2>/dev/null)" != "$identity" ]; then
    hash=$(printf '%s' "$identity" | sha256sum)
    folder+=-${hash:0:8}
  fi
  printf '%s\n' "$folder"
}
