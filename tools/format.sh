#!/usr/bin/env bash
# Formats the C++ code with clang-format 16; with --check it only tells which files differ.
set -eu
cd "$(dirname "$0")/.."
command -v clang-format-16 >/dev/null || { echo "format: clang-format-16 is missing" >&2; exit 4; }
mapfile -t files < <(find include src tests bench -name '*.h' -o -name '*.cc' | sort)
if [ "${1:-}" = --check ]; then
  clang-format-16 --dry-run -Werror "${files[@]}" && echo "format: ok"
else
  clang-format-16 -i "${files[@]}"
fi
