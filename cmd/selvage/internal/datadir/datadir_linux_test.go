package datadir

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// nobody is the ID of an account without rights.
const nobody = 65534

// checkAsNobody checks a directory with the rights of nobody. It changes the account of a single
// thread, which ends with its goroutine.
func checkAsNobody(dir string) error {
	const keep = ^uintptr(0) // the saved user ID stays the same
	checked := make(chan error)
	go func() {
		runtime.LockOSThread()
		_, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, keep)
		if errno != 0 {
			checked <- fmt.Errorf("changing the account to nobody: %w", errno)
			return
		}
		checked <- Check(dir)
	}()
	return <-checked
}

// TestCheckOfOtherOwner shows the error of a command whose account cannot write the directory, or
// cannot find it.
func TestCheckOfOtherOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the account")
	}
	const another = "set --data to a writable directory"
	parent := t.TempDir()
	hidden := filepath.Join(parent, "closed", "data")
	if err := os.MkdirAll(hidden, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{parent, filepath.Dir(parent)} { // until now, only root can open them
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}

	tests := []struct{ name, dir, want string }{
		{
			name: "not writable",
			dir:  parent,
			want: "permission denied: it belongs to root, but this command is running as " + Account(nobody) +
				"; run it as the directory's owner, or " + another,
		},
		{
			name: "not found",
			dir:  hidden,
			want: "stat " + hidden + ": permission denied; " + another,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := checkAsNobody(tt.dir)
			if err == nil || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("Check(%s) = %v, want an error that ends with %q", tt.dir, err, tt.want)
			}
		})
	}
}
