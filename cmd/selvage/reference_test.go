package main

import (
	"io"
	"os"
	"testing"

	"github.com/spf13/pflag"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/command"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// TestReferences checks that docs/cli.md and docs/configuration.md match the program. With
// UPDATE_DOCS=1, it writes them.
func TestReferences(t *testing.T) {
	e := &cli.Env{Getenv: func(string) string { return "" }, Stdout: io.Discard, Stderr: io.Discard}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddFlags(flags, false)
	references := map[string]string{
		"configuration.md": config.Reference(),
		"cli.md":           cli.Reference(command.Root(e, command.Build{}), flags),
	}
	for name, want := range references {
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
			t.Errorf("docs/%s is out of date: run UPDATE_DOCS=1 go test -run TestReferences ./cmd/selvage", name)
		}
	}
}
