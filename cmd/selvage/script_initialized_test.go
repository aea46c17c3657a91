package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/selvage/selvage/test/servers"
)

// A dataTemplate is a data directory with keys, and a database with a schema, as they are after the first
// command. To save time, the template is created once and copied for each script that uses it.
type dataTemplate struct {
	t    *testing.T // the original is deleted when this test ends
	once sync.Once

	// create sets these fields.
	files   map[string][]byte // contents of the data directory
	backend []string          // environment variables that select the database
	err     error
}

// cmdInitialized implements the script command initialized: it copies the template to selvage-data
// and to the database of the script.
func (d *dataTemplate) cmdInitialized(ts *testscript.TestScript, _ bool, _ []string) {
	d.once.Do(func() { d.err = d.create(filepath.Join(ts.Getenv("BIN"), "selvage")) })
	ts.Check(d.err)

	ts.Check(os.Mkdir(ts.MkAbs("selvage-data"), 0o700))
	for name, content := range d.files {
		ts.Check(os.WriteFile(ts.MkAbs(filepath.Join("selvage-data", name)), content, 0o600))
	}

	script := ts.Value(scriptTKey{}).(scriptT)
	for _, entry := range d.backend {
		if url, ok := strings.CutPrefix(entry, "SELVAGE_DATABASE="); ok {
			setAll(ts.Setenv, servers.BackendLike(script, url))
		}
	}
}

// create runs a command and reads the files that the command has written, except SQLite's -shm files,
// which SQLite creates again.
func (d *dataTemplate) create(selvage string) error {
	dir := d.t.TempDir()
	d.backend = servers.Backend(d.t)
	cmd := exec.Command(selvage, "migrate", "up", "--data", dir)
	cmd.Env = slices.Concat(os.Environ(), d.backend)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("creating a data template: %w\n%s", err, out)
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading a data template: %w", err)
	}
	d.files = make(map[string][]byte)
	for _, entry := range entries {
		name := entry.Name()
		if !entry.Type().IsRegular() || strings.HasSuffix(name, "-shm") {
			continue
		}
		d.files[name], err = os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("reading a data template: %w", err)
		}
	}
	return nil
}

// setAll calls set for each NAME=VALUE of an environment.
func setAll(set func(name, value string), environment []string) {
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		set(name, value)
	}
}
