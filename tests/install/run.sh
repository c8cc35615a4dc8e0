#!/usr/bin/env bash
# Installs the build in $1 into a temporary folder, builds consumer.cc against it and runs it on $2.
set -eu
here=$(dirname "$(readlink -f "$0")")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cmake --install "$1" --prefix "$tmp/prefix" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
cmake -S "$here" -B "$tmp/build" -G Ninja -DCMAKE_PREFIX_PATH="$tmp/prefix" -DCMAKE_BUILD_TYPE=Release \
  >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
cmake --build "$tmp/build" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
# Empty metadata, and two nodes of type COMP: 7, and 8 that depends on 7.
printf '\0\4\10\7\30\4\7\10\10\30\4\52\1\7' >"$tmp/two.et"
"$tmp/build/consumer" "$2" "$tmp/two.et"
"$tmp/prefix/bin/etude" info "$2" >/dev/null
