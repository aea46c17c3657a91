// Package cli is how commands talk: arguments and flags, output as table, JSON or ids, prompts,
// progress, errors with their exit status, and the generated reference and manual pages.
//
// It knows nothing of the nouns; package command says what each of them does.
package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/suggest"
)

// An Env is what a command line runs in: its streams, its environment, and the chosen format.
type Env struct {
	Program        string // as it was called
	Getenv         func(string) string
	Environ        []string // the variables that Getenv knows, NAME=value
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

// InputName returns how messages name a file of the command line; "-" is stdin.
func InputName(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// ReadInput reads a file, or stdin if its name is "-". More than most bytes are an error.
func (e *Env) ReadInput(name string, most int) ([]byte, error) {
	in := e.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}

	text, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", InputName(name), err)
	case len(text) > most:
		return nil, fmt.Errorf("%s is larger than %d MiB", InputName(name), most>>20)
	}
	return text, nil
}
