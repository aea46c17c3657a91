package harness

import (
	"fmt"
	"os"
)

// A Program is a [T] for programs that are not tests, such as benchmarks. A failure ends the
// process. The zero value is ready to use; call [Program.End] last.
type Program struct {
	Name string // prefix of the messages of Fatalf

	cleanups []func()
	failed   bool
}

func (p *Program) Helper()                           {}
func (p *Program) Failed() bool                      { return p.failed }
func (p *Program) Cleanup(f func())                  { p.cleanups = append(p.cleanups, f) }
func (p *Program) Logf(format string, args ...any)   { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (p *Program) Skipf(format string, args ...any)  { p.Fatalf(format, args...) }
func (p *Program) Errorf(format string, args ...any) { p.failed = true; p.Logf(format, args...) }

func (p *Program) Fatalf(format string, args ...any) {
	p.Errorf("%s: "+format, append([]any{p.Name}, args...)...)
	p.End()
	os.Exit(1)
}

func (p *Program) TempDir() string {
	dir, err := os.MkdirTemp("", "selvage-bench-")
	if err != nil {
		p.Fatalf("%v", err)
	}
	p.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// End runs the cleanups in reverse order.
func (p *Program) End() {
	for len(p.cleanups) > 0 {
		last := len(p.cleanups) - 1
		f := p.cleanups[last]
		p.cleanups = p.cleanups[:last]
		f()
	}
}
