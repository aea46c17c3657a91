package truststore

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestElsewhereOfSpecialFiles shows that no file in a user's home directory can block a process
// that runs as root, or fill its memory.
func TestElsewhereOfSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, device := filepath.Join(dir, "pipe"), filepath.Join(dir, "device")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", device); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{pipe, device, dir} {
		done := make(chan []string, 1)
		go func() { done <- namedProfiles(name) }()
		select {
		case got := <-done:
			if len(got) > 0 {
				t.Errorf("namedProfiles(%s) = %q, want none", name, got)
			}
		case <-time.After(time.Minute):
			t.Fatalf("namedProfiles(%s) does not return", name)
		}
	}
}
