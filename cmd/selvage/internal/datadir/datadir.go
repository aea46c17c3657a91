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

// Errors about the data directory end with one of these texts.
const (
	useAnother  = "set --data to a writable directory"
	nameAnother = "; " + useAnother
	orAnother   = ", or " + useAnother
)

// Check returns an error if the directory cannot be used. Without this check, opening the files in
// it would fail later with less helpful errors.
func Check(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return unusable(dir, err)
	}
	if !info.IsDir() {
		return unusable(dir, syscall.ENOTDIR)
	}

	const writable = 0o3 // W_OK and X_OK
	err = syscall.Access(dir, writable)
	self := os.Geteuid()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EACCES) && UID(info) != self:
		return fmt.Errorf("opening data directory %s: %w: it belongs to %s, but this command is running as %s; "+
			"run it as the directory's owner%s", dir, err, Owner(info), Account(self), orAnother)
	}
	return unusable(dir, err)
}

// unusable returns the error for a directory that cannot be used.
func unusable(dir string, err error) error {
	return fmt.Errorf("opening data directory %s: %w%s", dir, err, nameAnother)
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
