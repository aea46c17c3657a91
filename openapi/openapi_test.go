package openapi

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write docs/openapi.yaml")

// committed is the path of the document's copy in the repository.
const committed = "../docs/openapi.yaml"

// build returns the document as YAML.
func build(t testing.TB, c Config) []byte {
	t.Helper()
	d, err := Build(c)
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestCommitted shows that docs/openapi.yaml is up to date. With -update, it writes the file.
func TestCommitted(t *testing.T) {
	want := build(t, Config{})
	if *update {
		if err := os.WriteFile(filepath.FromSlash(committed), want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.FromSlash(committed))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatal("docs/openapi.yaml differs from the sources and kinds; run\n\n\tgo test ./openapi -update")
	}
}
