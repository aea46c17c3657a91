package database

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestLockFails shows that an error of the operating system is not reported as a lock that another
// process holds.
func TestLockFails(t *testing.T) {
	lock, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}

	err = waitForLock(t.Context(), lock)
	if !errors.Is(err, syscall.EBADF) {
		t.Errorf("waitForLock of a closed file = %v, want %v", err, syscall.EBADF)
	}
	if err != nil && strings.Contains(err.Error(), "another selvage process") {
		t.Errorf("waitForLock of a closed file = %v, which blames another process", err)
	}
}
