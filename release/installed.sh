#!/bin/sh
# installed.sh PACKAGE IMAGE: installs, upgrades, removes and purges the Debian package as users do,
# and runs the image (its unpacked files) as its account. Everything happens in a copy of this
# machine in memory, which disappears with this process. Needs root, Linux with overlayfs,
# and dpkg. Run it with `unshare --mount --pid --fork --kill-child`.
set -eu
package=$(realpath "$1") image=$(realpath "$2")
dir=$(mktemp -d)
mount -t tmpfs tmpfs "$dir"
mkdir "$dir/upper" "$dir/work" "$dir/machine" "$dir/packages"
mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" "$dir/machine"
for of in "$dir/machine" "$image"; do
    mkdir -p "$of/proc" && mount -t proc proc "$of/proc"
done
mount -t tmpfs tmpfs "$dir/machine/run" # hides this machine's systemd
mount -t tmpfs -o mode=1777 tmpfs "$dir/machine/tmp"
mount --bind /dev "$dir/machine/dev"
mkdir "$dir/machine/tmp/packages"
rm -rf "$dir/machine/etc/selvage" "$dir/machine/var/lib/selvage" # those of this machine

chroot=$(command -v chroot) # the path, because the environment is empty below
fail() { echo "installed: $*" >&2; exit 1; }
on() { chroot "$dir/machine" "$@"; }
# Use free ports, so that this machine's servers do not interfere.
free="SELVAGE_LISTEN_OPS=127.0.0.1:0 SELVAGE_LISTEN_TLS=off"
# served ROOT ACCOUNT VARIABLES COMMAND...: starts a server in ROOT, runs doctor, and stops it.
served() {
    root=$1 account=$2 variables=$3
    shift 3
    rm -f "$root$data/run.json"
    env -i $variables $free "$chroot" --userspec="$account" "$root" "$@" >"$dir/log" 2>&1 &
    server=$!
    until [ -e "$root$data/run.json" ]; do
        kill -0 $server 2>/dev/null || { cat "$dir/log" >&2; fail "the server of $root did not start"; }
        sleep 0.1
    done
    said=$(env -i SELVAGE_DATA="$data" "$chroot" --userspec="$account" "$root" /usr/bin/selvage doctor) || { echo "$said" >&2; fail "doctor failed for the server of $root"; }
    kill $server && wait $server || { cat "$dir/log" >&2; fail "the server of $root did not stop cleanly"; }
}
as_unit() {
    data=/var/lib/selvage
    served "$dir/machine" selvage:selvage SELVAGE_LISTEN=127.0.0.1:0 $(on sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/selvage.service)
}
dpkg_() { on dpkg --no-triggers --force-unsafe-io "$@" >"$dir/log" 2>&1 || { cat "$dir/log" >&2; fail "dpkg $*"; }; }

# Build the same package with a newer version, to test an upgrade.
dpkg-deb -R "$package" "$dir/packages/newer"
sed -i 's/^Version: .*/&+newer/' "$dir/packages/newer/DEBIAN/control"
dpkg-deb -Znone -b "$dir/packages/newer" "$dir/machine/tmp/packages/newer.deb" >"$dir/log"
cp "$package" "$dir/machine/tmp/packages/first.deb"

dpkg_ -i /tmp/packages/first.deb
[ "$(on stat -c '%U:%G %a' /var/lib/selvage)" = 'selvage:selvage 700' ] || fail "/var/lib/selvage is not private to the account"
if on which systemd-analyze >/dev/null 2>&1; then
    on systemd-analyze verify --man=no /usr/lib/systemd/system/selvage.service || fail "systemd rejects the unit"
fi
as_unit
[ -s "$dir/machine/var/lib/selvage/setup-link.txt" ] || fail "the link for the first operator is missing"
(cd "$dir/machine" && on selvage project list 2>&1) | grep -q 'use --config /etc/selvage/selvage.yaml' || fail "a command does not name the configuration of the package"
id=$(on selvage project create Kept --config /etc/selvage/selvage.yaml -o id)
[ -z "$(find "$dir/machine/var/lib/selvage" ! -user "$(on id -u selvage)")" ] || fail "a command run as root left files that the server cannot write"
echo '# of an administrator' >>"$dir/machine/etc/selvage/selvage.yaml"

dpkg_ -i /tmp/packages/newer.deb
on grep -q '^# of an administrator' /etc/selvage/selvage.yaml || fail "an upgrade replaced the configuration"
as_unit
dpkg_ -r selvage
[ ! -e "$dir/machine/usr/bin/selvage" ] || fail "the program is still there after its removal"
dpkg_ -i /tmp/packages/newer.deb
[ "$(on selvage project list --config /etc/selvage/selvage.yaml -o id)" = "$id" ] || fail "data is missing after an upgrade and a removal"
dpkg_ -P selvage
[ ! -e "$dir/machine/etc/selvage" ] || fail "a purge leaves /etc/selvage"
[ -e "$dir/machine/var/lib/selvage/selvage.db" ] || fail "a purge deletes the data"

# Run the image with the variables, account and command in the files next to it.
data=/data
echo '127.0.0.1 localhost' >"$image/etc/hosts" # every container runtime adds this
served "$image" "$(cat "$image.user")" "$(cat "$image.env") SELVAGE_LISTEN=0.0.0.0:0" $(cat "$image.command")
[ -s "$image/data/setup-link.txt" ] || fail "the link for the image's first operator is missing"
umount "$image/proc"
