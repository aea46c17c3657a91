package main

import (
	"io"
	"os"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// The references are what the program says of itself. UPDATE_DOCS=1 writes them.
func TestReferences(t *testing.T) {
	c := &cli{getenv: func(string) string { return "" }, stdout: io.Discard, stderr: io.Discard}
	for name, want := range map[string]string{"configuration.md": config.Reference(),
		"cli.md": cliReference(c.rootCommand())} {
		file := "../../docs/" + name
		if os.Getenv("UPDATE_DOCS") != "" {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("docs/%s is not what the program says: UPDATE_DOCS=1 go test -run TestReferences ./cmd/selvage writes it", name)
		}
	}
}
