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

var kept []byte

// spin uses about d of CPU time.
func spin(d time.Duration) {
	for began := threadTime(); threadTime()-began < d; {
	}
}

func TestCheck(t *testing.T) {
	b := Bound{CPU: time.Millisecond, Heap: 1 << 10, PerByte: 1}
	calls := 0
	tests := []struct {
		name  string
		parse func()
		want  string
	}{
		{"cheap", func() {}, ""},
		{"slow", func() { spin(3 * time.Millisecond * slowdown()) }, "CPU time"},
		{"large", func() { kept = make([]byte, 1<<20) }, "bytes are allocated"},
		{"slow once", func() {
			if calls++; calls == 1 {
				spin(3 * time.Millisecond * slowdown())
			}
		}, ""},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r recorder
			b.Check(&r, 10, tt.parse)
			got := strings.Join(r.failures, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("Check reports %q, want %q", got, tt.want)
			}
		})
	}
}

// TestCheckAllows shows that the bound grows with each byte of the input.
func TestCheckAllows(t *testing.T) {
	var r recorder
	Bound{CPU: time.Second, PerByte: 1 << 10}.Check(&r, 1<<10, func() { kept = make([]byte, 1<<20) })
	if len(r.failures) > 0 {
		t.Errorf("Check of an input that may cost this much reports %q, want no failures", r.failures)
	}
}
