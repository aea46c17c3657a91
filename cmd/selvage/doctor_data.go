package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

func (e *examination) dataChecks() []check {
	data, media := folder{"the data directory", e.config.Data}, folder{"the media directory", e.config.mediaDir()}
	all := []check{
		{"Data", "directory", e.dataDirectory},
		{"Data", "files", func(context.Context) []finding { return e.files(data.path) }},
		{"Data", "writing", data.writing},
		{"Data", "space", data.space},
		{"Data", "filesystem", data.filesystem},
		{"Media", "directory", e.mediaDirectory},
		{"Media", "writing", media.writing},
	}
	if !sameDevice(data.path, media.path) {
		all = append(all, check{"Media", "space", media.space}, check{"Media", "filesystem", media.filesystem})
	}
	return all
}

// A folder is a directory with its name in a sentence.
type folder struct{ name, path string }

// there reports whether a folder can be looked at. If not, somebody else says why.
func (f folder) there() bool {
	info, err := os.Stat(f.path)
	return err == nil && info.IsDir()
}

func (e *examination) dataDirectory(context.Context) []finding {
	dir := e.config.Data
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []finding{warnedf("name the server's with --data or SELVAGE_DATA, or begin with `selvage serve`, which makes it",
			"there is no %s", absolute(dir))}
	case err != nil:
		return []finding{brokenf(asOwner(dir), "%s", cause(err))}
	case !info.IsDir():
		return []finding{brokenf("name a directory with --data", "%s is no directory", absolute(dir))}
	}
	mode := info.Mode().Perm()
	all := []finding{finef("%s, of %s, mode %o", absolute(dir), ownerOf(info), mode)}
	if mode&0o022 != 0 {
		all[0] = brokenf("chmod 700 "+dir, "others may write in %s (mode %o)", absolute(dir), mode)
	} else if mode&0o055 != 0 {
		all[0] = warnedf("chmod 700 "+dir, "others may look into %s (mode %o)", absolute(dir), mode)
	}
	if uid := os.Geteuid(); uid != 0 && uid != uidOf(info) {
		all = append(all, brokenf(asOwner(dir), "the directory belongs to %s, and this is %s", ownerOf(info), nameOfUID(uid)).of("account"))
	}
	return all
}

// asOwner says how to look as whoever may.
func asOwner(dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil {
			return fmt.Sprintf("run this as the server's account: sudo -u %s selvage doctor", ownerOf(info))
		}
		if dir == filepath.Dir(dir) {
			return "run this as the server's account"
		}
	}
}

// files looks at the owners and modes of what lies in the data directory.
func (e *examination) files(dir string) (all []finding) {
	home, err := os.Stat(dir)
	entries, readErr := os.ReadDir(dir)
	if err != nil || readErr != nil {
		return nil // told of the directory
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			continue // it went away
		}
		name := filepath.Join(dir, entry.Name())
		if uidOf(info) != uidOf(home) {
			all = append(all, brokenf(fmt.Sprintf("chown -R %s %s", ownerOf(home), name),
				"%s belongs to %s, the directory to %s", entry.Name(), ownerOf(info), ownerOf(home)))
		}
		if open := info.Mode().Perm() & 0o077; open != 0 && !public(entry.Name()) && !info.IsDir() {
			all = append(all, warnedf("chmod 600 "+name, "others may read %s (mode %o)", entry.Name(), info.Mode().Perm()))
		}
	}
	if all == nil {
		all = []finding{finef("%s, all of one account", plural(len(entries), "file"))}
	}
	return all
}

// public reports whether a file is meant for others, too.
func public(name string) bool { return name == runFile || name == "ca.pem" }

func (e *examination) mediaDirectory(context.Context) []finding {
	dir := e.config.mediaDir()
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !(folder{path: e.config.Data}).there():
		return []finding{skippedf("there is none before the first start")}
	case errors.Is(err, fs.ErrNotExist):
		return []finding{brokenf("put it back, or name where it is with --media; a start makes an empty one, and then recordings have no bytes",
			"there is no %s", absolute(dir))}
	case err != nil:
		return []finding{brokenf(asOwner(dir), "%s", cause(err))}
	case !info.IsDir():
		return []finding{brokenf("name a directory with --media", "%s is no directory", absolute(dir))}
	}
	return []finding{finef("%s, of %s, mode %o", absolute(dir), ownerOf(info), info.Mode().Perm())}
}

// writing makes a file as the server makes them, and removes it.
func (f folder) writing(context.Context) []finding {
	if !f.there() {
		return nil
	}
	began := time.Now()
	err := tryWriting(f.path)
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case errors.Is(err, syscall.EROFS):
		return []finding{brokenf("remount it writable (mount -o remount,rw), and look into `dmesg` for why it is not: a disk that fails is made read-only",
			"%s is on a filesystem that is read-only", f.name)}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return []finding{brokenf("free some space, or raise the quota; the server goes on by itself", "there is no space left in %s", f.name)}
	case errors.Is(err, fs.ErrPermission):
		return []finding{brokenf(asOwner(f.path), "%s cannot be written in", f.name)}
	case err != nil:
		return []finding{brokenf("look into `dmesg`: the disk may be failing", "%s", cause(err))}
	case took > 250*time.Millisecond:
		return []finding{warnedf("use a faster disk: each change waits for this", "a file is on the disk after %s, which is slow", took)}
	}
	return []finding{finef("a file is on the disk after %s", max(took, time.Millisecond))}
}

// tryWriting creates, writes, syncs, renames and removes a file.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	name, moved := f.Name(), f.Name()+"-moved"
	_, err = f.Write(make([]byte, 4096))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(name, moved)
	}
	if gone := os.Remove(moved); gone == nil || err == nil {
		return errors.Join(err, gone)
	}
	return errors.Join(err, os.Remove(name))
}

func uidOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

func ownerOf(info fs.FileInfo) string { return nameOfUID(uidOf(info)) }

func nameOfUID(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// cause gives an error of a file without the call that met it.
func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Path + ": " + path.Err.Error()
	}
	return err.Error()
}
