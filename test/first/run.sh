#!/bin/bash
# Measures how long docs/start.md takes a newcomer with a fresh clone and empty caches of modules and
# builds. It runs the commands of the page in order, and prints the seconds. The server gets free
# ports, so that it does not collide with another server.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
server=
trap 'if [[ $server ]]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
export GOMODCACHE=$dir/modules GOCACHE=$dir/builds GOFLAGS=-modcacherw GOTOOLCHAIN=local
unset SELVAGE_DATA SELVAGE_DATABASE

began=$SECONDS
git clone --quiet "$here" "$dir/selvage"
cd "$dir/selvage"
cloned=$SECONDS
make --no-print-directory build >"$dir/make.log" 2>&1 || { tail -20 "$dir/make.log" >&2; exit 1; }
built=$SECONDS
bin/selvage serve --listen 127.0.0.1:0 --listen-tls 127.0.0.1:0 --listen-ops 127.0.0.1:0 >"$dir/serve.log" 2>&1 &
server=$!
until [[ -e selvage-data/run.json ]]; do
    kill -0 "$server" 2>/dev/null || { cat "$dir/serve.log" >&2; exit 1; }
    sleep 0.1
done
url=$(sed 's/.*"public_url":"\([^"]*\)".*/\1/' selvage-data/run.json)
sed -n '/^```sh$/,/^```$/{/^```/!p}' docs/start.md | sed "s|http://localhost:8080|$url|g" >"$dir/lines"
bash -euo pipefail "$dir/lines" >"$dir/lines.log" 2>&1 || { cat "$dir/lines.log" >&2; exit 1; }
test "$(head -c 4 hello.wav)" = RIFF
grep -q 'ada@example.com' "$dir/lines.log"
echo "clone $((cloned - began)) s, build $((built - cloned)) s, from there to a token and a recording $((SECONDS - built)) s: $((SECONDS - began)) s in all"
