package main

import (
	"fmt"
	"os"
)

// program is the harness.T of a program: what fails ends it.
type program struct {
	cleanups []func()
	failed   bool
}

func (p *program) Helper()                           {}
func (p *program) Failed() bool                      { return false } // no log of the server for a figure that is missed
func (p *program) Cleanup(f func())                  { p.cleanups = append(p.cleanups, f) }
func (p *program) Logf(format string, args ...any)   { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (p *program) Skipf(format string, args ...any)  { p.Fatalf(format, args...) }
func (p *program) Errorf(format string, args ...any) { p.failed = true; p.Logf(format, args...) }

func (p *program) Fatalf(format string, args ...any) {
	p.Errorf("passwords: "+format, args...)
	p.end()
	os.Exit(1)
}

func (p *program) TempDir() string {
	dir, err := os.MkdirTemp("", "selvage-bench-")
	if err != nil {
		p.Fatalf("%v", err)
	}
	p.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// end tidies up, the last thing first.
func (p *program) end() {
	for len(p.cleanups) > 0 {
		last := len(p.cleanups) - 1
		f := p.cleanups[last]
		p.cleanups = p.cleanups[:last]
		f()
	}
}
