#!/usr/bin/env bash
# Builds the wheel once, for as many machines as you like, and says how far it is.
#
#   tools/wheel.sh [--python PYTHON] [-o FOLDER] [-C SETTING=VALUE]...
#
#   --python PYTHON   the Python that the wheel is for (python3)
#   -o FOLDER         where the wheel goes (dist)
#   -C SETTING=VALUE  a setting of scikit-build-core, as for pip
#
# What was compiled stays in build-wheel: the next call compiles what has changed. ETUDE_PIP_ARGS holds more arguments for pip.
set -euo pipefail
here=$PWD
cd "$(dirname "$(readlink -f "$0")")/.."
. tools/setup.sh

python=python3 folder=dist
settings=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --python | -o | -C)
      [ $# -gt 1 ] || { printf 'wheel.sh: %s: found nothing, expected a value\n' "$1" >&2; exit 2; }
      case $1 in
        --python) python=$2 ;;
        -o) case $2 in /*) folder=$2 ;; *) folder=$here/$2 ;; esac ;;
        -C) settings+=("--config-settings=$2") ;;
      esac
      shift 2
      ;;
    *) printf 'wheel.sh: unexpected argument %s\n' "$1" >&2; exit 2 ;;
  esac
done

# has_requirements PYTHON: whether it can build the wheel as it is.
has_requirements() { "$1" -c 'import nanobind, pip, scikit_build_core' 2>/dev/null; }

setup_packages "${ETUDE_BUILD_PACKAGES[@]}"
if ! has_requirements "$python"; then
  command -v "$python" >/dev/null || setup_packages python3
  "$python" -c 'import venv, ensurepip' 2>/dev/null || setup_packages python3-venv
  "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || setup_packages python3-dev
  venv=build-wheel/venv-$("$python" -c 'import sys; print(sys.implementation.cache_tag)')
  if ! has_requirements "$venv/bin/python"; then
    say "making a private Python environment in $venv with: ${ETUDE_WHEEL_REQUIREMENTS[*]}"
    "$python" -m venv "$venv" || die "$python -m venv failed"
    # shellcheck disable=SC2086
    "$venv/bin/python" -m pip install -q --disable-pip-version-check ${ETUDE_PIP_ARGS:-} \
      "${ETUDE_WHEEL_REQUIREMENTS[@]}" || die "pip could not install ${ETUDE_WHEEL_REQUIREMENTS[*]}"
  fi
  python=$venv/bin/python
fi

# progress: of ninja's "[12/345] …" the numbers: in place on a terminal, else each tenth.
progress() {
  local terminal=0
  [ ! -t 2 ] || terminal=1
  awk -v terminal=$terminal '
    match($0, /^ *\[[0-9]+\/[0-9]+\]/) {
      split(substr($0, RSTART, RLENGTH), number, /[][\/ ]+/)
      tenth = int(10 * number[2] / number[3])
      if (terminal) printf "\r    %d of %d files", number[2], number[3]
      else if (tenth != last) printf "    %d of %d files\n", number[2], number[3]
      last = tenth
      fflush()
      shown = 1
    }
    END { if (shown && terminal) printf "\n" }' >&2
}

mkdir -p build-wheel "$folder"
log=build-wheel/wheel.log
made=$(mktemp -d build-wheel/made.XXXXXX)
trap 'rm -rf "$made"' EXIT
began=$SECONDS
say "building the wheel for $("$python" -c 'import platform; print("Python", platform.python_version())');" \
  "minutes the first time ($log)"
if ! "$python" -m pip wheel -v --disable-pip-version-check --no-deps --no-build-isolation \
  "--config-settings=build-dir=build-wheel" ${settings[@]+"${settings[@]}"} -w "$made" . 2>&1 |
  tee "$log" | progress; then
  grep -E 'error|Error|FAILED' "$log" | head -60 >&2 || tail -20 "$log" >&2
  die "the wheel could not be built ($log)"
fi
wheel=$(cd "$made" && echo etude-*.whl)
# What the system where it is installed must have, beside the C++ library's own.
"$python" -m zipfile -e "$made/$wheel" "$made/content"
libraries=$(find "$made/content" -type f \( -name '*.so' -o -path '*/scripts/etude' \) -exec objdump -p {} + |
  awk '$1 == "NEEDED" && $2 !~ /^(libc|libm|libstdc\+\+|libgcc_s|ld-linux.*)\.so/ {print $2}' | sort -u | tr '\n' ' ')
mv -f "$made/$wheel" "$folder/"
say "built in $((SECONDS - began)) s; to install it, here or on machines with: ${libraries% }"
printf 'python%s -m pip install %s\n' "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" "$folder/$wheel"
