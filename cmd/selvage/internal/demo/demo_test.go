package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/store/storetest"
)

// TestInterrupted shows that no project exists before the data directory contains its id. Otherwise a
// project left behind by an interrupted start would keep later starts from creating the demo.
func TestInterrupted(t *testing.T) {
	dir := storetest.Dir(t)
	rows := storetest.Open(t, dir, nil)
	f := fabric.New(fabric.Config{Stores: rows.Fabric(), Ring: storetest.Ring(t, dir, rows, nil)})
	d, err := New(Config{Dir: filepath.Join(dir, "missing"), Allowed: true, Fabric: f})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.FirstRun(t.Context()); err == nil {
		t.Fatal("FirstRun without a data directory = nil, want an error")
	}

	projects, err := f.Projects.List(t.Context(), page.Query{Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(projects.Items) > 0 {
		t.Errorf("FirstRun created the project %s, want none", projects.Items[0].ID)
	}
}

// TestExists shows that a demo exists while any of its files is left.
func TestExists(t *testing.T) {
	d, err := New(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", TextFile, unfinishedFile, appFile} {
		if name != "" {
			if err := os.WriteFile(d.file(name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		exists, err := d.Exists()
		if err != nil {
			t.Fatal(err)
		}
		if want := name != ""; exists != want {
			t.Errorf("with the file %q, Exists = %t, want %t", name, exists, want)
		}
		if name == "" {
			continue
		}
		if err := os.Remove(d.file(name)); err != nil {
			t.Fatal(err)
		}
	}
}
