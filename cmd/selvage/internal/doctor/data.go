package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/mediastore"
	"github.com/selvage/selvage/store"
)

// dataChecks returns the checks of the data and media directories. The space and filesystem
// of the media directory are checked only if it is on another device.
func (e *Examination) dataChecks() []check {
	data := folder{e, e.Config.Data}
	media := folder{e, e.Config.MediaDir()}
	all := []check{
		{"Data", "directory", e.dataDirectory},
		{"Data", "files", func(context.Context) []Finding { return e.files(data.path) }},
		{"Data", "writing", data.writing},
		{"Data", "space", data.space},
		{"Data", "filesystem", data.filesystem},
		{"Data", "kinds", e.ownKinds},
		{"Data", "backups", e.backups},
	}
	if e.Config.Media.Shared() {
		return append(all, check{group: "Media", name: "bucket", look: e.bucket})
	}

	all = append(all,
		check{group: "Media", name: "directory", look: e.mediaDirectory},
		check{group: "Media", name: "writing", look: media.writing},
	)
	if !sameDevice(data.path, media.path) {
		all = append(all,
			check{group: "Media", name: "space", look: media.space},
			check{group: "Media", name: "filesystem", look: media.filesystem},
		)
	}
	return all
}

// A folder is a directory to check.
type folder struct {
	*Examination
	path string
}

// dataDirectory checks that the data directory exists, and that only its owner and group have
// access to it.
func (e *Examination) dataDirectory(context.Context) []Finding {
	dir := e.Config.Data
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{e.noDirectory(dir)}
	case err != nil:
		return []Finding{brokenf("%s", cause(err)).withRemedy(e.asServer(dir))}
	case !info.IsDir():
		return []Finding{brokenf("%s is not a directory", absolute(dir)).withRemedy("set --data to a directory")}
	}

	mode := info.Mode().Perm()
	switch {
	case mode&0o002 != 0 && info.Mode()&fs.ModeSticky == 0:
		return []Finding{brokenf("every user can write to %s (mode %s)", absolute(dir), octal(mode)).
			withRemedy(Text("chmod 700 " + dir))}
	case mode&0o007 != 0:
		return []Finding{warnedf("every user can read %s (mode %s)", absolute(dir), octal(mode)).
			withRemedy(Text("chmod 700 " + dir))}
	}
	return []Finding{finef("%s, owner %s, mode %s", absolute(dir), datadir.Owner(info), octal(mode))}
}

// noDirectory returns the finding for a missing data directory. The finding depends on whether a server
// could create the directory at its start.
func (e *Examination) noDirectory(dir string) Finding {
	const writable = 0o3 // W_OK and X_OK
	parent := filepath.Dir(absolute(dir))
	for parent != "/" && !isDir(parent) {
		parent = filepath.Dir(parent)
	}
	if err := syscall.Access(parent, writable); err != nil {
		return brokenf("%s does not exist and cannot be created: %s: %s", absolute(dir), parent, err).
			withRemedy("set --data, or create the directory for the server's account")
	}
	return warnedf("%s does not exist", absolute(dir)).
		withRemedy("set --data or SELVAGE_DATA to the server's directory, or run `selvage serve` to create it")
}

// mediaDirectory checks that the media directory exists if it is needed.
func (e *Examination) mediaDirectory(ctx context.Context) []Finding {
	dir := e.Config.MediaDir()
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{e.noMedia(ctx, dir)}
	case err != nil:
		return []Finding{brokenf("%s", cause(err)).withRemedy(e.asServer(dir))}
	case !info.IsDir():
		return []Finding{brokenf("%s is not a directory", absolute(dir)).withRemedy("set --media to a directory")}
	}
	mode := octal(info.Mode().Perm())
	return []Finding{finef("%s, owner %s, mode %s", absolute(dir), datadir.Owner(info), mode)}
}

// bucket checks that the object store can be reached and contains the bucket.
func (e *Examination) bucket(context.Context) []Finding {
	if err := mediastore.ProbeBucket(e.Config); err != nil {
		return []Finding{brokenf("%s", cause(err)).
			withRemedy("check media, s3.access_key, s3.secret_key, and that the bucket exists")}
	}
	return []Finding{finef("%s", e.Config.Media)}
}

// noMedia returns the finding for a missing media directory. The finding is an error only if
// recordings were stored in the directory.
func (e *Examination) noMedia(ctx context.Context, dir string) Finding {
	missing := skippedf("%s does not exist; the first start creates it", absolute(dir))
	e.overRows(ctx, func(s *store.Store) []Finding {
		has, err := s.HasRecordings(ctx)
		if err == nil && has {
			missing = brokenf("%s does not exist, but recordings are stored in it", absolute(dir)).
				withRemedy("restore it, mount it, or set --media to its location")
		}
		return nil
	})
	return missing
}

// slowWrite is how long writing a file may take before the check warns.
const slowWrite = 250 * time.Millisecond

// writing creates and removes a file in the same way as the server, and measures how long that
// takes.
func (f folder) writing(context.Context) []Finding {
	if !isDir(f.path) {
		return nil
	}

	began := time.Now()
	err := tryWriting(f.path)
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case errors.Is(err, syscall.EROFS):
		const remedy = "remount it writable (mount -o remount,rw), and check `dmesg` for the reason: " +
			"failing disks become read-only"
		return []Finding{brokenf("%s is on a read-only filesystem", absolute(f.path)).withRemedy(remedy)}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return []Finding{brokenf("no space is left in %s", absolute(f.path)).
			withRemedy("free some space or raise the quota; the server recovers automatically")}
	case errors.Is(err, fs.ErrPermission):
		return []Finding{brokenf("%s is not writable", absolute(f.path)).withRemedy(f.asServer(f.path))}
	case err != nil:
		return []Finding{brokenf("%s", cause(err)).withRemedy("check `dmesg`: the disk may be failing")}
	case took > slowWrite:
		return []Finding{warnedf("writing a file to disk takes %s, which is slow", took).
			withRemedy("use a faster disk: every change waits for this")}
	}

	return []Finding{finef("writing a file to disk takes %s", max(took, time.Millisecond))}
}

// probe is the prefix of the files that tryWriting creates.
const probe = ".doctor-"

// tryWriting creates, writes, syncs, renames and removes a file.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, probe+"*")
	if err != nil {
		return err
	}
	name := f.Name()
	_, err = f.Write(make([]byte, 4096))
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	moved := name + "-moved"
	if err := os.Rename(name, moved); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return os.Remove(moved)
}

// octal formats the mode of a file, such as 700.
func octal(mode fs.FileMode) string { return strconv.FormatUint(uint64(mode), 8) }

// absolute returns the absolute form of a path, or the path itself if that cannot be determined.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// cause formats err without the name of the failed system call.
func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Path + ": " + path.Err.Error()
	}
	return err.Error()
}
