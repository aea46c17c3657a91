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

// A beginning is the data directory and database after a first command, with keys and a schema. To
// save time, it is created once and copied for each script that uses it.
type beginning struct {
	files   map[string][]byte // contents of the data directory
	backend []string          // environment variables of that command
}

// newBeginning returns a function that creates the beginning when it is first called. The beginning
// is deleted when the test ends.
func newBeginning(t *testing.T) func(selvage string) (*beginning, error) {
	var once sync.Once
	var made *beginning
	var err error
	return func(selvage string) (*beginning, error) {
		once.Do(func() { made, err = begin(selvage, t.TempDir(), servers.Backend(t)) })
		return made, err
	}
}

// begin runs a command in dir and returns the files that the command wrote, except SQLite's -shm
// files.
func begin(selvage, dir string, backend []string) (*beginning, error) {
	cmd := exec.Command(selvage, "ring", "list", "--data", dir)
	cmd.Env = slices.Concat(os.Environ(), backend)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("beginning: %w\n%s", err, out)
	}

	b := &beginning{files: make(map[string][]byte), backend: backend}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("beginning: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !entry.Type().IsRegular() || strings.HasSuffix(name, "-shm") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("beginning: %w", err)
		}
		b.files[name] = content
	}
	return b, nil
}

// cmdBegun copies the beginning to selvage-data and to the database of the script.
func cmdBegun(begun func(selvage string) (*beginning, error)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, _ []string) {
		b, err := begun(filepath.Join(ts.Getenv("BIN"), "selvage"))
		ts.Check(err)
		ts.Check(os.Mkdir(ts.MkAbs("selvage-data"), 0o700))
		for name, content := range b.files {
			ts.Check(os.WriteFile(ts.MkAbs(filepath.Join("selvage-data", name)), content, 0o600))
		}
		t := ts.Value(scriptTKey{}).(scriptT)
		for _, entry := range b.backend {
			if url, ok := strings.CutPrefix(entry, "SELVAGE_DATABASE="); ok {
				setAll(ts.Setenv, servers.BackendLike(t, url))
			}
		}
	}
}

// setAll calls set for each NAME=VALUE of an environment.
func setAll(set func(name, value string), environment []string) {
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		set(name, value)
	}
}
