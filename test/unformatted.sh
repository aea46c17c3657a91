#!/bin/sh
# Fails if a Go file is not formatted, and names it.
cd "$(dirname "$0")/.."
files=$(git ls-files --cached --others --exclude-standard '*.go' | xargs gofmt -l)
test -z "$files" || { echo "$files"; echo "run gofmt -w on these files"; exit 1; }
