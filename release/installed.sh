#!/bin/sh
# installed.sh PACKAGE IMAGE: installs, upgrades, removes and purges the Debian package, and runs
# the image (its files, unpacked) as its account, each as those have it who get it. All of that
# is in a copy of this machine that is written to memory and gone with this process: it needs
# root, Linux with overlayfs, and dpkg. Called by `unshare --mount --pid --fork --kill-child`.
set -eu
package=$(realpath "$1") image=$(realpath "$2")
dir=$(mktemp -d)
mount -t tmpfs tmpfs "$dir"
mkdir "$dir/upper" "$dir/work" "$dir/machine" "$dir/packages"
mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" "$dir/machine"
for of in "$dir/machine" "$image"; do
    mkdir -p "$of/proc" && mount -t proc proc "$of/proc"
done
mount -t tmpfs tmpfs "$dir/machine/run" # where systemd would be seen, were it there
mount -t tmpfs -o mode=1777 tmpfs "$dir/machine/tmp"
mount --bind /dev "$dir/machine/dev"
mkdir "$dir/machine/tmp/packages"
rm -rf "$dir/machine/etc/selvage" "$dir/machine/var/lib/selvage" # whatever this machine has

chroot=$(command -v chroot) # by its path: below, the environment is empty
fail() { echo "installed: $*" >&2; exit 1; }
on() { chroot "$dir/machine" "$@"; }
# Ports of its own: nothing of this machine is in the way.
free="SELVAGE_LISTEN_OPS=127.0.0.1:0 SELVAGE_LISTEN_TLS=off"
# served ROOT ACCOUNT VARIABLES COMMAND...: starts a server there, has it looked at, and stops it.
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
    said=$(env -i SELVAGE_DATA="$data" "$chroot" --userspec="$account" "$root" /usr/bin/selvage doctor) || { echo "$said" >&2; fail "the server of $root is not well"; }
    kill $server && wait $server || { cat "$dir/log" >&2; fail "the server of $root did not stop as it should"; }
}
as_unit() {
    data=/var/lib/selvage
    served "$dir/machine" selvage:selvage SELVAGE_LISTEN=127.0.0.1:0 $(on sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/selvage.service)
}
dpkg_() { on dpkg --no-triggers --force-unsafe-io "$@" >"$dir/log" 2>&1 || { cat "$dir/log" >&2; fail "dpkg $*"; }; }

# The same package as a newer one, to upgrade to.
dpkg-deb -R "$package" "$dir/packages/newer"
sed -i 's/^Version: .*/&+newer/' "$dir/packages/newer/DEBIAN/control"
dpkg-deb -Znone -b "$dir/packages/newer" "$dir/machine/tmp/packages/newer.deb" >"$dir/log"
cp "$package" "$dir/machine/tmp/packages/first.deb"

dpkg_ -i /tmp/packages/first.deb
[ "$(on stat -c '%U:%G %a' /var/lib/selvage)" = 'selvage:selvage 700' ] || fail "/var/lib/selvage is not the account's alone"
if on which systemd-analyze >/dev/null 2>&1; then
    on systemd-analyze verify --man=no /usr/lib/systemd/system/selvage.service || fail "systemd does not like the unit"
fi
as_unit
[ -s "$dir/machine/var/lib/selvage/setup-link.txt" ] || fail "there is no link for the first operator"
(cd "$dir/machine" && on selvage project list 2>&1) | grep -q 'use --config /etc/selvage/selvage.yaml' || fail "a command does not say where the server of the package is"
id=$(on selvage project create Kept --config /etc/selvage/selvage.yaml -o id)
[ -z "$(find "$dir/machine/var/lib/selvage" ! -user "$(on id -u selvage)")" ] || fail "a command of root's has left files that the server cannot write"
echo '# of an administrator' >>"$dir/machine/etc/selvage/selvage.yaml"

dpkg_ -i /tmp/packages/newer.deb
on grep -q '^# of an administrator' /etc/selvage/selvage.yaml || fail "an upgrade took a configuration away"
as_unit
dpkg_ -r selvage
[ ! -e "$dir/machine/usr/bin/selvage" ] || fail "the program is there after its removal"
dpkg_ -i /tmp/packages/newer.deb
[ "$(on selvage project list --config /etc/selvage/selvage.yaml -o id)" = "$id" ] || fail "what was stored is not there after an upgrade and a removal"
dpkg_ -P selvage
[ ! -e "$dir/machine/etc/selvage" ] || fail "a purge leaves /etc/selvage"
[ -e "$dir/machine/var/lib/selvage/selvage.db" ] || fail "a purge takes the data away"

# The image, with what its configuration says: variables, account and command, in files beside it.
data=/data
echo '127.0.0.1 localhost' >"$image/etc/hosts" # which every runtime gives a container
served "$image" "$(cat "$image.user")" "$(cat "$image.env") SELVAGE_LISTEN=0.0.0.0:0" $(cat "$image.command")
[ -s "$image/data/setup-link.txt" ] || fail "there is no link for the first operator of the image"
umount "$image/proc"
