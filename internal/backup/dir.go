package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
)

// A Dir holds backups that share their media.
type Dir struct{ files Storage }

// OpenDir returns a Dir that keeps its files in a Storage.
func OpenDir(files Storage) Dir { return Dir{files} }

// The names of archives in a Dir, and of their summaries.
const (
	archivePrefix = "selvage-"
	archiveSuffix = ".age"
	summarySuffix = ".json"
	timeFormat    = "20060102T150405.000Z"
)

// A Summary describes a backup without revealing its contents. A Dir has one for each archive, in
// plain text.
type Summary struct {
	Name       string    `json:"name"`
	Created    time.Time `json:"created_at"`
	Program    string    `json:"program,omitempty"`
	Schema     int64     `json:"schema,omitempty"`
	Rows       int64     `json:"rows"`
	Recordings int64     `json:"recordings"`
	MediaBytes int64     `json:"media_bytes"`
	Bytes      int64     `json:"bytes"`            // size of the archive
	SHA256     string    `json:"sha256,omitempty"` // SHA-256 of the archive in hex
}

// A Report describes what a backup contains, and what was written for it.
type Report struct {
	Summary
	Manifest   Manifest
	Added      int64 // number of media files that this backup stored
	AddedBytes int64
}

// Create writes a backup. No other process may write to the Dir meanwhile, because Create first removes
// what interrupted backups have left. If the media differs from the rows, but the backup is otherwise
// complete, the error is a [Mismatch]. If the archive reads back differently, Create removes it.
func (d Dir) Create(ctx context.Context, to []age.Recipient, s Source) (r Report, err error) {
	if err := d.files.RemoveUnfinished(); err != nil {
		return r, err
	}

	name := archivePrefix + s.Now().UTC().Format(timeFormat) + archiveSuffix
	beside := func(ctx context.Context, o Object, open func() (io.ReadCloser, error)) (Object, error) {
		stored, added, err := d.store(ctx, to, o, open)
		if added {
			r.Added++
			r.AddedBytes += stored.Bytes
		}
		isDamaged := err == nil && stored.SHA256 != o.SHA256
		if isDamaged || errors.Is(err, fs.ErrNotExist) {
			if err := d.keepCopies(o.SHA256); err != nil {
				return stored, err
			}
		}
		return stored, err
	}

	var w *writer
	var out *counted
	err = d.files.Write(name, func(file io.Writer) (err error) {
		out = &counted{w: file, hash: sha256.New()}
		w, err = writeArchive(ctx, out, to, s, beside)
		return err
	})
	if err != nil {
		return r, err
	}

	r.Manifest = w.manifest
	r.Summary = w.summary(name, out)
	if err := d.checkNew(name, r.SHA256); err != nil {
		return Report{}, err
	}

	text, err := json.Marshal(r.Summary)
	if err != nil {
		return r, err
	}

	err = d.files.Write(name+summarySuffix, func(file io.Writer) error {
		_, err := file.Write(append(text, '\n'))
		return err
	})
	return r, errors.Join(err, w.mismatch())
}

// summary returns the Summary of the archive that was written.
func (w *writer) summary(name string, out *counted) Summary {
	return Summary{
		Name:       name,
		Created:    w.header.Created,
		Program:    w.Program,
		Schema:     w.Schema,
		Rows:       w.manifest.Rows(),
		Recordings: w.manifest.Media.Recordings,
		MediaBytes: w.manifest.Media.Bytes,
		Bytes:      out.n,
		SHA256:     hex.EncodeToString(out.hash.Sum(nil)),
	}
}

// checkNew reads a new archive again. If the archive is damaged, checkNew removes it, because it
// would be taken for the newest backup. The error is not a [Mismatch], since there is no backup. An
// archive that cannot be read stays, because it may be complete.
func (d Dir) checkNew(name, want string) error {
	err := d.check(name, want)
	if err == nil {
		return nil
	}
	var mismatch *Mismatch
	if !errors.As(err, &mismatch) {
		return fmt.Errorf("reading the new backup back: %w", err)
	}
	return errors.Join(fmt.Errorf("reading the new backup back: %v", err), d.files.Remove(name))
}

// check reads an archive again and compares its SHA-256 with want.
func (d Dir) check(name, want string) error {
	file, err := d.files.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return compareSHA256(file, name, want)
}

func compareSHA256(r io.Reader, name, want string) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return &Mismatch{[]error{fmt.Errorf("%s has SHA-256 %s, not %s", name, got, want)}}
	}
	return nil
}

// counted counts and hashes the bytes that are written to w.
type counted struct {
	w    io.Writer
	hash interface {
		io.Writer
		Sum([]byte) []byte
	}
	n int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.hash.Write(b[:n])
	c.n += int64(n)
	return n, err
}

// mediaFile returns the name of the media file with the given SHA-256, for recipients with the given
// digest.
func mediaFile(sha, recipients string) string {
	return mediaPrefix + sha[:2] + "/" + sha + "-" + recipients + archiveSuffix
}

// store stores the bytes of an object, unless an earlier backup has stored them for the same
// recipients.
func (d Dir) store(
	ctx context.Context, to []age.Recipient, o Object, open func() (io.ReadCloser, error),
) (stored Object, added bool, err error) {
	if err := ctx.Err(); err != nil {
		return o, false, err
	}
	recipients, err := digestOf(to)
	if err != nil {
		return o, false, err
	}
	if isSHA256(o.SHA256) {
		exists, err := d.files.Use(mediaFile(o.SHA256, recipients))
		if err != nil || exists {
			return o, false, err
		}
	}
	content, err := open()
	if err != nil {
		return o, false, err
	}
	defer content.Close()

	// Name the file after the bytes that were read, even if they differ from the row.
	sum := sha256.New()
	o.Bytes, err = io.Copy(sum, content)
	if err != nil {
		return o, false, err
	}
	o.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if _, err := content.(io.Seeker).Seek(0, io.SeekStart); err != nil {
		return o, false, err
	}

	err = d.files.Write(mediaFile(o.SHA256, recipients), func(file io.Writer) error {
		encrypted, err := age.Encrypt(file, to...)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(encrypted, content, o.Bytes); err != nil {
			return err
		}
		return encrypted.Close()
	})
	if err != nil {
		return o, false, err
	}
	return o, true, nil
}

// keepCopies marks the media files with the given SHA-256 as used, for all recipients, so that Prune
// keeps them. After a change of recipients, they may be the last copies of a lost recording.
func (d Dir) keepCopies(sha string) error {
	if !isSHA256(sha) {
		return nil
	}
	folder := mediaPrefix + sha[:2]
	return d.files.Files(folder, func(f File) error {
		if !strings.HasPrefix(f.Name, folder+"/"+sha) {
			return nil
		}
		_, err := d.files.Use(f.Name)
		return err
	})
}

func isSHA256(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}

// Archive returns the archive with the given name, as listed by List.
func (d Dir) Archive(name string) Archive { return Archive{dir: d, Name: name} }

// List returns the backups, newest first. Their times come from their names.
func (d Dir) List() (backups []Summary, err error) {
	err = d.files.Files(".", func(f File) error {
		created, err := parseName(f.Name)
		if err != nil {
			return nil // not a backup
		}
		backups = append(backups, Summary{Name: f.Name, Created: created, Bytes: f.Size})
		return nil
	})
	if err != nil {
		return nil, err
	}

	slices.SortFunc(backups, func(a, b Summary) int { return b.Created.Compare(a.Created) })
	for i := range backups {
		backups[i], err = d.readSummary(backups[i])
		if err != nil {
			return nil, err
		}
	}
	return backups, nil
}

// parseName returns the time in the name of an archive in a Dir.
func parseName(name string) (time.Time, error) {
	return time.Parse(archivePrefix+timeFormat+archiveSuffix, name)
}

// isArchive reports whether a file is an archive in a Dir, or the summary of one.
func isArchive(name string) bool {
	_, err := parseName(strings.TrimSuffix(name, summarySuffix))
	return err == nil
}

// readSummary reads the summary of an archive. If the summary is missing or damaged, readSummary returns
// listed, which has what the archive's name says, and no error: a damaged summary must not hide other
// backups.
func (d Dir) readSummary(listed Summary) (Summary, error) {
	file, err := d.files.Open(listed.Name + summarySuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return listed, nil
	}
	if err != nil {
		return listed, err
	}
	defer file.Close()

	var summary Summary
	if err := json.NewDecoder(io.LimitReader(file, maxJSON)).Decode(&summary); err != nil {
		return listed, nil
	}
	summary.Name = listed.Name
	summary.Created = listed.Created
	return summary, nil
}

// CreateFile writes a backup to a new file, with the media inside.
func CreateFile(ctx context.Context, file string, to []age.Recipient, s Source) (r Report, err error) {
	if _, err := os.Lstat(file); err == nil {
		return r, fmt.Errorf("writing the backup: %s: %w", file, fs.ErrExist)
	}
	dir, name := split(file)
	files, err := OpenFolder(dir)
	if err != nil {
		return r, err
	}

	var w *writer
	var out *counted
	err = files.Write(name, func(file io.Writer) (err error) {
		out = &counted{w: file, hash: sha256.New()}
		var beside bytesStore // nil, so the media goes into the archive
		w, err = writeArchive(ctx, out, to, s, beside)
		return err
	})
	if err != nil {
		return r, err
	}

	r = Report{
		Summary:    w.summary(name, out),
		Manifest:   w.manifest,
		Added:      w.manifest.Media.Files,
		AddedBytes: w.manifest.Media.Bytes,
	}
	if err := (Dir{files}).checkNew(name, r.SHA256); err != nil {
		return Report{}, err
	}
	return r, w.mismatch()
}
