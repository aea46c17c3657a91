package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/audio"
	"github.com/selvage/selvage/recordings/naming"
)

// importFiles imports the files in paths, including the files in directories.
func (im *importer) importFiles(ctx context.Context, paths []string) error {
	im.progress.Expect(sizeOf(paths))
	for file, err := range audioFiles(paths) {
		outcome := importedFile{Path: file, Status: rejected}
		if err == nil {
			outcome, err = im.importNew(ctx, file)
		}
		if errors.Is(err, errJournaled) {
			im.files++
			continue
		}
		if err := im.report(outcome, err); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// errJournaled is the error for a file that an earlier import has stored.
var errJournaled = errors.New("the journal has this file")

// importNew stores a file and adds it to the journal. If the journal already has the file, importNew
// returns errJournaled.
func (im *importer) importNew(ctx context.Context, file string) (importedFile, error) {
	info, err := os.Stat(file)
	if err != nil {
		return importedFile{Path: file}, err
	}
	if im.journal.has(file, info.Size(), info.ModTime()) {
		im.progress.Skip(info.Size())
		return importedFile{}, errJournaled
	}
	outcome, err := im.importFile(ctx, file)
	if err != nil {
		return outcome, err
	}
	return outcome, im.journal.add(file, info.Size(), info.ModTime(), outcome.Sid)
}

// sizeOf returns the total size of the files to import. It ignores unreadable files, which
// audioFiles reports.
func sizeOf(paths []string) (sum int64) {
	for file, err := range audioFiles(paths) {
		if err != nil {
			continue
		}
		if info, err := os.Stat(file); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// audioFiles yields the files in paths. From a directory, it yields only files with the extension of
// an audio format.
func audioFiles(paths []string) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		for _, root := range paths {
			err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
				if err == nil {
					isNamed := path == root
					if entry.IsDir() || !isNamed && !audio.IsName(path) {
						return nil
					}
				}
				if !yield(path, err) {
					return fs.SkipAll
				}
				return nil
			})
			if err != nil && !yield(root, err) {
				return
			}
		}
	}
}

// importFile stores a file as a recording, which the name of the file and the JSON file next to it
// describe.
func (im *importer) importFile(ctx context.Context, file string) (importedFile, error) {
	f, err := im.open(file)
	if err != nil {
		return importedFile{Path: file}, err
	}
	defer f.Close()

	d := im.about
	d.Path, err = filepath.Abs(file)
	if err != nil {
		return importedFile{Path: file}, fmt.Errorf("finding %s: %w", file, err)
	}
	if err := im.readSidecar(file, &d); err != nil {
		return importedFile{Path: file}, err
	}
	im.patterns.Describe(d.Path, &d)
	before, err := f.Stat()
	if err != nil {
		return importedFile{Path: file}, err
	}
	describe := func() (recordings.Description, error) { return d, unchanged(f, before) }
	return im.store(ctx, file, f, file, describe)
}

// unchanged returns errGrowing if the size or modification time of f differs from that in before.
func unchanged(f *os.File, before fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime()) {
		return errGrowing
	}
	return nil
}

// readSidecar reads the JSON file that describes file, if it exists.
func (im *importer) readSidecar(file string, d *recordings.Description) error {
	for _, name := range sidecars(file) {
		f, err := im.open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		defer f.Close()

		text, err := io.ReadAll(io.LimitReader(f, maxSidecar+1))
		if err != nil {
			return err
		}
		if len(text) > maxSidecar {
			return fmt.Errorf("%s: %w", name, errSidecar)
		}
		return naming.ReadSidecar(text, d)
	}
	return nil
}

// sidecars returns the possible names of the JSON file about a file, the preferred name first.
func sidecars(file string) []string {
	return []string{file + ".json", strings.TrimSuffix(file, filepath.Ext(file)) + ".json"}
}

// errSidecar is the error for a JSON file that is too large.
var errSidecar = fmt.Errorf("the JSON about the recording is larger than %d bytes", maxSidecar)

// maxSidecar is the maximum length of a JSON file about a recording, in bytes.
const maxSidecar = 1 << 20
