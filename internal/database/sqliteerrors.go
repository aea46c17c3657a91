package database

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// An Unfit explains why a database cannot be used as it is, and what to do about it.
type Unfit struct{ Found, Remedy string }

// Error returns Found and Remedy, separated by a semicolon.
func (u *Unfit) Error() string { return u.Found + "; " + u.Remedy }

// foreign returns the Unfit for a database with tables of another program.
func foreign(tables []string, remedy string) *Unfit {
	if len(tables) > 3 {
		tables = append(slices.Clone(tables[:3]), "…")
	}
	return &Unfit{
		Found: fmt.Sprintf("the database belongs to another program: it has tables %s, but none of selvage's",
			strings.Join(tables, ", ")),
		Remedy: remedy,
	}
}

// lostChanges returns the Unfit for a file whose log is incomplete, so that acknowledged changes
// are missing.
func lostChanges(name string, left, total uint32) *Unfit {
	name = filepath.Base(name)
	return &Unfit{
		Found: fmt.Sprintf("the newest changes are missing: of %d pages in %s-wal, %d are left",
			total, name, left),
		Remedy: fmt.Sprintf("restore %s-wal, or replace %s with a backup and delete -wal and -shm; "+
			"to continue without the missing changes, delete %s-shm", name, name, name),
	}
}

// explainDamage converts an error from SQLite to an Unfit if the error means that the file is
// damaged or not a database. It returns other errors unchanged.
func explainDamage(name string, sync Sync, err error) error {
	switch code, text := codeOf(err); code {
	case sqlite3.SQLITE_NOTADB:
		return &Unfit{
			Found:  "the file is not, or no longer, an SQLite database",
			Remedy: "use another file, or restore a backup",
		}
	case sqlite3.SQLITE_CORRUPT:
		return damaged(name, sync, text)
	}
	return err
}

func damaged(name string, sync Sync, how string) *Unfit {
	name = filepath.Base(name)
	files := fmt.Sprintf("%s, %s-wal and %s-shm", name, name, name)
	remedy := fmt.Sprintf("keep copies of %s, and replace them with a backup of %s", files, name)
	if sync == Normal { // a Normal file holds sessions, and losing them is acceptable
		remedy = "move " + files + " away; a new file is created, and only logins in progress are lost"
	}
	return &Unfit{Found: fmt.Sprintf("the database is damaged (%s)", how), Remedy: remedy}
}

// diagnose converts an error from opening a file to an Unfit if it knows the cause. It returns
// other errors unchanged.
func diagnose(name string, sync Sync, err error) error {
	switch code, text := codeOf(err); code {
	case sqlite3.SQLITE_FULL:
		return &Unfit{
			Found:  "no space is left on its disk",
			Remedy: "free some space and start again; nothing is lost",
		}
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return &Unfit{
			Found:  "another program has locked the database",
			Remedy: fmt.Sprintf("stop that program; `fuser -v %s` shows which", name),
		}
	case sqlite3.SQLITE_READONLY:
		return &Unfit{
			Found: "the database is not writable",
			Remedy: fmt.Sprintf(
				"check `ls -l %s*` and `mount`: the file, its directory and the filesystem must be writable", name),
		}
	case sqlite3.SQLITE_IOERR:
		return &Unfit{
			Found:  fmt.Sprintf("the disk reports errors (%s)", text),
			Remedy: "check `dmesg`, and the free space with `df`",
		}
	}
	return explainDamage(name, sync, err)
}

// codeOf returns the primary code and the text of an error from SQLite. For other errors, code is
// -1.
func codeOf(err error) (code int, text string) {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return -1, ""
	}
	return e.Code() & 0xff, e.Error()
}

// checkAccess checks that this process may read a file and, if write is set, write to it. If
// permission is denied, it returns an Unfit that names the file's owner.
func checkAccess(name string, write bool) error {
	const read, alter, search = 0o4, 0o2, 0o1 // R_OK, W_OK, X_OK
	dir, mode := uint32(search), uint32(read)
	if write {
		dir, mode = search|alter, read|alter
	}

	switch err := access(filepath.Dir(name), dir); {
	case errors.Is(err, fs.ErrNotExist) && write:
		return &Unfit{
			Found:  filepath.Dir(name) + " does not exist",
			Remedy: "create the directory, or use another file",
		}
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}

	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := access(name+suffix, mode); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func access(path string, mode uint32) error {
	err := syscall.Access(path, mode)
	switch {
	case errors.Is(err, syscall.EROFS):
		return &Unfit{
			Found:  path + " is on a read-only filesystem",
			Remedy: "remount it writable, and check `dmesg` for the reason",
		}
	case !errors.Is(err, syscall.EACCES):
		return err
	}

	own := strconv.Itoa(os.Geteuid())
	if u, err := user.Current(); err == nil {
		own = u.Username
	}
	return &Unfit{
		Found:  fmt.Sprintf("%s belongs to %s, but this account is %s: permission denied", path, ownerOf(path), own),
		Remedy: fmt.Sprintf("run this as that account, or change the owner (chown %s %s)", own, path),
	}
}

// ownerOf describes the account that owns a file.
func ownerOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "another account"
	}
	uid := strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Uid))
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return "account " + uid
}
