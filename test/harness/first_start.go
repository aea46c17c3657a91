package harness

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/selvage/selvage/test/servers"
)

// A beginning is the state that a server leaves after its first start. A server that starts from
// this state already has keys and a schema, and need not create them.
type beginning struct {
	files    map[string][]byte // contents of the data directory, by file name
	database string            // URL of the database; "" for SQLite, whose file is in files
}

// begun is the beginning that this process copies for new servers. Therefore all of these servers
// have the same keys. The shared server has its own keys.
var begun *beginning

// begin copies the beginning to dir, which must not exist yet. It returns the environment variables
// that select the server's database and session store.
func begin(t T, dir string) []string {
	t.Helper()
	b := theBeginning(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatalf("making a data directory: %v", err)
	}
	for name, content := range b.files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatalf("copying the data directory of the first start: %v", err)
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
		t.Fatalf("stopping the first server: %v\n%s", err, s.Log())
	}

	b := &beginning{make(map[string][]byte), s.Database()}
	entries, err := os.ReadDir(s.Data)
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasSuffix(e.Name(), "-shm") { // -shm is SQLite's shared memory
			continue
		}
		// Certificates contain the names of this server, and are created quickly.
		if strings.HasPrefix(e.Name(), "ca") {
			continue
		}
		content, readErr := os.ReadFile(filepath.Join(s.Data, e.Name()))
		b.files[e.Name()] = content
		if readErr != nil {
			err = readErr
		}
	}

	if err != nil {
		t.Fatalf("reading the data directory of the first start: %v", err)
	}
	return b
}
