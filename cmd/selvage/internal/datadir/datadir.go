// Package datadir is the directory in which a server keeps what it keeps: whose it is,
// whether it can be used, and which server is running in it. What lies in its files
// is known to those who write them.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// Make makes a data directory, where there is none.
func Make(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making data directory: %w%s", err, nameAnother)
	}
	return Check(dir)
}

// How errors of the data directory end.
const (
	another     = "name one that can be written with --data"
	nameAnother = "; " + another
	orAnother   = ", or " + another
)

// Check tells early and plainly what each file in it would.
func Check(dir string) error {
	const writable = 0o3 // W_OK and X_OK
	info, err := os.Stat(dir)
	switch {
	case err != nil:
	case !info.IsDir():
		err = syscall.ENOTDIR
	default:
		err = syscall.Access(dir, writable)
	}
	if errors.Is(err, syscall.EACCES) && UID(info) != os.Geteuid() {
		return fmt.Errorf("opening data directory %s: %w: it belongs to %s, and this is %s; run it as that account%s", dir, err, Owner(info), Account(os.Geteuid()), orAnother)
	}
	if err != nil {
		return fmt.Errorf("opening data directory %s: %w%s", dir, err, nameAnother)
	}
	return nil
}

// UID returns the account that owns a file.
func UID(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// Owner names the account that owns a file.
func Owner(info fs.FileInfo) string { return Account(UID(info)) }

// Account names an account, by its number where it has no name.
func Account(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}
