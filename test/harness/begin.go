package harness

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/selvage/selvage/test/servers"
)

// A beginning is what a server left that began on nothing: who begins with it has its
// keys and its schema, and need not make them.
type beginning struct {
	files    map[string][]byte // of its data directory
	database string            // the URL of its rows; "" where they are in the files
}

// begun is the beginning of a process. What is begun twice with it has the same keys,
// and others than the shared server.
var begun *beginning

// begin returns a beginning in dir, which is not there yet, and the environment that
// names what a server finds elsewhere.
func begin(t T, dir string) []string {
	t.Helper()
	b := theBeginning(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatalf("making a data directory: %v", err)
	}
	for name, content := range b.files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatalf("beginning: %v", err)
		}
	}
	return servers.BackendLike(t, b.database)
}

func theBeginning(t T) *beginning {
	t.Helper()
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if begun == nil {
		begun = makeBeginning(t)
	}
	return begun
}

func makeBeginning(t T) *beginning {
	t.Helper()
	dir, err := os.MkdirTemp("", "selvage-begun-")
	if err != nil {
		t.Fatalf("making a data directory: %v", err)
	}
	defer os.RemoveAll(dir)
	s := &Server{Data: filepath.Join(dir, "data"), Backends: servers.Backend(lasting{t}), binary: Binary(t)}
	s.start(t, "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0")
	if err := s.Stop(t); err != nil {
		t.Fatalf("beginning: %v\n%s", err, s.Log())
	}
	b := &beginning{make(map[string][]byte), s.Database()}
	entries, err := os.ReadDir(s.Data)
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasSuffix(e.Name(), "-shm") { // what SQLite shares while it runs
			continue
		}
		if strings.HasPrefix(e.Name(), "ca") { // the authority is for the names of that server, and quickly made
			continue
		}
		content, readErr := os.ReadFile(filepath.Join(s.Data, e.Name()))
		if b.files[e.Name()] = content; readErr != nil {
			err = readErr
		}
	}
	if err != nil {
		t.Fatalf("beginning: %v", err)
	}
	return b
}
