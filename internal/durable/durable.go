// Package durable makes changes to directories survive a power failure.
package durable

import (
	"errors"
	"fmt"
	"os"
)

// SyncDir makes the names in a directory durable. Until it returns, a power failure can undo that a
// file was created, renamed or linked, even if the content of the file has been synced.
func SyncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("syncing directory: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("syncing directory: %w", err)
	}
	return nil
}
