#!/bin/sh
# Runs every fuzz target of the module for FUZZTIME each.
set -eu
: "${GO:=go}" "${FUZZTIME:=10s}"
grep -rl --include='*_test.go' '^func Fuzz' . | grep -v '^./test/' | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/^func //' | sort -u | while read -r target; do
		echo "== $dir $target"
		"$GO" test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" "$dir"
	done
done
