// Package datadir manages the directory in which a server keeps its data. It checks who owns the
// directory, whether it can be used, and which server is running in it. It does not know the
// contents of the files that other packages write there.
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

// Make creates a data directory if it does not exist, and checks it.
func Make(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating data directory: %w%s", err, nameAnother)
	}
	return Check(dir)
}

// These texts are the ends of errors about the data directory.
const (
	another     = "set --data to a writable directory"
	nameAnother = "; " + another
	orAnother   = ", or " + another
)

// Check returns an error if the directory cannot be used. Without this check, opening the files in
// it would fail later with less helpful errors.
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
		return fmt.Errorf(
			"opening data directory %s: %w: it belongs to %s, but this account is %s; run the command as its owner%s",
			dir, err, Owner(info), Account(os.Geteuid()), orAnother)
	}

	if err != nil {
		return fmt.Errorf("opening data directory %s: %w%s", dir, err, nameAnother)
	}
	return nil
}

// UID returns the user ID of a file's owner.
func UID(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// Owner returns the name of a file's owner.
func Owner(info fs.FileInfo) string { return Account(UID(info)) }

// Account returns the name of an account, or its ID if it has no name.
func Account(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}
