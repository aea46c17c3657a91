package command

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// TestWritePrivateUnreadable shows that an export succeeds in a directory in which files can be created,
// but which cannot be read.
func TestWritePrivateUnreadable(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "drop")
	if err := os.Mkdir(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if os.Geteuid() == 0 {
		dropRoot(t, parent, dir)
	}

	name := filepath.Join(dir, "export")
	err := writePrivate(name, func(w io.Writer) error {
		_, err := io.WriteString(w, "text")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); string(got) != "text" || err != nil {
		t.Errorf("the file has %q, %v, want text", got, err)
	}
	if _, err := os.ReadDir(dir); !os.IsPermission(err) {
		t.Errorf("reading the directory returned %v, want that it is not permitted", err)
	}
}

// dropRoot makes the file operations of this test act as another account until the test ends, because root
// can read all directories. The account owns dir, and can pass through parent.
func dropRoot(t *testing.T, parent, dir string) {
	t.Helper()
	const account = 65534 // nobody
	if err := os.Chmod(filepath.Dir(parent), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, account, account); err != nil {
		t.Fatal(err)
	}

	runtime.LockOSThread() // only this thread acts as the account
	t.Cleanup(func() {
		if err := syscall.Setfsuid(0); err != nil {
			return // the thread stays locked, so it ends together with this goroutine
		}
		runtime.UnlockOSThread()
	})
	if err := syscall.Setfsuid(account); err != nil {
		t.Fatal(err)
	}
}
