package command

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestWritePrivateUnreadable shows that an export succeeds in a directory in which files can be created,
// but which cannot be read.
func TestWritePrivateUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can read all directories")
	}
	dir := filepath.Join(t.TempDir(), "drop")
	if err := os.Mkdir(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })

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
}
