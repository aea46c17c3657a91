package backups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
)

// tempPrefix begins the names of the directories in which restores write databases.
const tempPrefix = ".restoring-"

// makeTemp creates a directory for the database of a restore inside dir. It first removes the
// directories of restores that were killed. remove removes the new directory.
func makeTemp(dir string) (temp string, remove func() error, err error) {
	if err := removeKilled(dir); err != nil {
		return "", nil, fmt.Errorf("removing the files of an interrupted restore: %w", err)
	}
	temp, err = os.MkdirTemp(dir, tempPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("creating a directory for the restore: %w", err)
	}
	lock, err := datadir.Lock(temp)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(temp))
	}
	return temp, func() error { return errors.Join(os.RemoveAll(temp), lock.Close()) }, nil
}

// removeKilled removes the directories of killed restores from dir. A running restore keeps its
// directory locked. It may have another data directory, but the same place for the database.
func removeKilled(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), tempPrefix) {
			continue
		}
		name := filepath.Join(dir, entry.Name())
		lock, err := datadir.Lock(name)
		if err != nil {
			continue // it is in use, or belongs to another account
		}
		if err := errors.Join(os.RemoveAll(name), lock.Close()); err != nil {
			return err
		}
	}
	return nil
}
