package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/selvage/selvage/test/harness"
)

// profile measures an operation again with the CPU profiler on, if profiles are requested. It
// discards the measurement.
func (w *world) profile(p *harness.Program, s settings, op operation) {
	if s.profiles == "" {
		return
	}
	if err := os.MkdirAll(s.profiles, 0o755); err != nil {
		p.Fatalf("%v", err)
	}

	seconds := max(1, int(s.length.Seconds()))
	got := make(chan harness.Answer)
	go func() {
		a, err := w.TryURL(http.MethodGet, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", w.Ops, seconds))
		if err != nil {
			p.Logf("profiling %s: %v", op.name, err)
		}
		got <- a
	}()

	measure(p, op, w.PID(), s.length, nil)

	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" ,()/", r) {
			return '-'
		}
		return r
	}, op.title())
	if err := os.WriteFile(filepath.Join(s.profiles, name+".pprof"), (<-got).Body, 0o644); err != nil {
		p.Fatalf("%v", err)
	}
}
