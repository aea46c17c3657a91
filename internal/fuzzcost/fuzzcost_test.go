package fuzzcost

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A recorder is a T that records failures.
type recorder struct{ failures []string }

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

var kept []byte // keeps the compiler from removing allocations

// spin uses about d of CPU time.
func spin(d time.Duration) {
	for began := threadTime(); threadTime()-began < d; {
	}
}

func TestCheck(t *testing.T) {
	b := Bound{CPU: time.Millisecond, Heap: 1 << 10, PerByte: 1}
	slow := func() { spin(3 * time.Millisecond * slowdown()) }
	calls := 0
	slowOnce := func() {
		calls++
		if calls == 1 {
			slow()
		}
	}

	for name, parse := range map[string]func(){"cheap": func() {}, "slow once": slowOnce} {
		t.Run(name, func(t *testing.T) {
			var r recorder
			b.Check(&r, 10, parse)
			if len(r.failures) > 0 {
				t.Errorf("Check reports %q, want no failures", r.failures)
			}
		})
	}

	for _, tt := range []struct {
		name  string
		parse func()
		want  string
	}{
		{"slow", slow, "CPU time"},
		{"large", func() { kept = make([]byte, 1<<20) }, "bytes are allocated"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r recorder
			b.Check(&r, 10, tt.parse)
			if got := strings.Join(r.failures, "\n"); !strings.Contains(got, tt.want) {
				t.Errorf("Check reports %q, want a failure that contains %q", got, tt.want)
			}
		})
	}
}

// TestCheckAllows shows that a longer input may allocate more.
func TestCheckAllows(t *testing.T) {
	var r recorder
	Bound{CPU: time.Second, PerByte: 1 << 10}.Check(&r, 1<<10, func() { kept = make([]byte, 1<<20) })
	if len(r.failures) > 0 {
		t.Errorf("Check of a call within the bound reports %q, want no failures", r.failures)
	}
}
