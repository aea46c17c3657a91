// Package cli implements what all commands share: arguments and flags, output as a table, JSON or
// ids, prompts, progress, exit statuses of errors, and the generated reference and manual pages.
//
// It knows nothing about nouns such as project or client. Package command implements their
// commands.
package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/suggest"
)

// An Env is the environment of a command line: its streams, its variables and the output format.
type Env struct {
	Program        string // the name by which it was called
	Getenv         func(string) string
	Environ        []string // the environment variables that Getenv looks up, as NAME=value
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Output         string // one of Formats
}

// Formats are the values of --output.
var Formats = []string{"table", "json", "id"}

// CheckOutput returns a usage error if Output is not one of Formats.
func (e *Env) CheckOutput() error {
	if slices.Contains(Formats, e.Output) {
		return nil
	}
	return Usagef("-o: unknown format %q%s", e.Output,
		suggest.MeantOr(e.Output, Formats, "use "+strings.Join(Formats, ", ")))
}

// InputName returns the name that messages use for an input file. The file "-" is stdin.
func InputName(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// ReadInput reads a file, or stdin if its name is "-". limit is the maximum number of bytes; longer
// input is an error.
func (e *Env) ReadInput(name string, limit int) ([]byte, error) {
	in := e.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}

	text, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", InputName(name), err)
	case len(text) > limit:
		return nil, fmt.Errorf("%s is larger than %d MiB", InputName(name), limit>>20)
	}
	return text, nil
}
