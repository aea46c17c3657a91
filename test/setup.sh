#!/usr/bin/env bash
# Installs what the tests need on Debian: nothing where all is there, else the
# missing packages for root, and one sentence that names them for anyone else.
set -euo pipefail
cd "$(dirname "$0")"

# What a test uses, and the Debian packages that bring it.
PATH=$PATH:/usr/sbin:$(printf '%s:' /usr/lib/postgresql/*/bin) # where Debian puts the server
missing=()
need() { # need COMMAND PACKAGE...
	command -v "$1" >/dev/null || missing+=("${@:2}")
}
need cc gcc libc6-dev # for the race detector
need certutil libnss3-tools
need chromium chromium
need curl curl
need ffprobe ffmpeg
need jq jq # in the tutorials
need lame lame
need mp3val mp3val
need nginx nginx-light
need qemu-aarch64 qemu-user # runs what is built for arm64
need sox sox libsox-fmt-mp3
need taskset util-linux
need node nodejs npm
need npm npm
need unshare util-linux
need update-ca-certificates ca-certificates
need initdb postgresql
need psql postgresql-client
need redis-server redis-server
need redis-cli redis-tools
dpkg -s asterisk-core-sounds-en-wav >/dev/null 2>&1 || missing+=(asterisk-core-sounds-en-wav)

if ((${#missing[@]})); then
	if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
		echo "The tests need these Debian packages: ${missing[*]}. Install them, or run test/setup.sh as root on Debian." >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	log=$(mktemp)
	# Tests start servers of their own: those of Debian are not started.
	policy=/usr/sbin/policy-rc.d
	if [[ -e $policy ]]; then
		policy=
	else
		printf '#!/bin/sh\nexit 101\n' >$policy
		chmod +x $policy
	fi
	trap 'rm -f "$log" $policy' EXIT
	if ! { apt-get update && apt-get install --yes --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
		cat "$log" >&2
		exit 1
	fi
fi

(cd acme/pebble && go mod download) # the ACME server, which its test builds

# npm writes this file last: it is as new as the lock file once all is installed. What it made of
# a lock file is kept, so that another clone links the same files instead of unpacking them again.
for dir in clients ../sdk; do
	if [[ $dir/node_modules/.package-lock.json -nt $dir/package-lock.json ]]; then
		continue
	fi
	made=$({ cat $dir/package.json $dir/package-lock.json && node --version && npm --version && uname -m; } | sha256sum | cut -c1-32)
	kept=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/selvage-tests/$made
	if [[ -d $kept ]] && rm -rf $dir/node_modules && cp -al "$kept" $dir/node_modules 2>/dev/null; then
		cp --remove-destination "$kept/.package-lock.json" $dir/node_modules/ # whose time is this clone's
	else
		npm ci --prefix $dir --silent # it removes what a copy that failed has left
		# Where there is no room for it, or it is on another disk, the next clone unpacks.
		if mkdir -p "${kept%/*}" 2>/dev/null && new=$(mktemp -d "${kept%/*}/new.XXXXXX" 2>/dev/null); then
			{ cp -al $dir/node_modules "$new/modules" && [[ ! -e $kept ]] && mv -T "$new/modules" "$kept"; } 2>/dev/null || true
			rm -rf "$new"
		fi
	fi
	touch $dir/node_modules/.package-lock.json
done
