// Package durable makes changes to directories survive a power failure.
package durable

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// SyncDir makes the names in a directory durable. Until it returns, a power failure can undo that a
// file was created, renamed or linked, even if the content of the file has been synced. Some file
// systems cannot sync directories. There, SyncDir does nothing.
func SyncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("syncing directory: %w", err)
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	if err := errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("syncing directory: %w", err)
	}
	return nil
}
