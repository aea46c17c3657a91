package main

import (
	"math"
	"testing"
	"time"
)

// TestMannWhitney compares p-values with known ones. If two samples of 500 values differ by a shift
// of ten values, U differs from its mean by 4,950. Sigma is 4,567, so z = 1.084.
func TestMannWhitney(t *testing.T) {
	ramp := func(n, from, step int) (all []time.Duration) {
		for i := range n {
			all = append(all, time.Duration(from+i*step))
		}
		return all
	}

	tests := []struct {
		name string
		a, b []time.Duration
		want float64
	}{
		{"identical samples", ramp(50, 0, 1), ramp(50, 0, 1), 1},
		{"all equal", ramp(20, 7, 0), ramp(20, 7, 0), 1},
		{"apart", ramp(5, 0, 1), ramp(5, 10, 1), 0.01219},
		{"a little apart", ramp(500, 0, 10), ramp(500, 100, 10), 0.2784},
		{"more apart", ramp(500, 0, 10), ramp(500, 500, 10), 0},
	}

	for _, tt := range tests {
		if got := mannWhitney(tt.a, tt.b); math.Abs(got-tt.want) > 0.002 {
			t.Errorf("%s: p = %.4f, want %.4f", tt.name, got, tt.want)
		}
		if got, turned := mannWhitney(tt.a, tt.b), mannWhitney(tt.b, tt.a); math.Abs(got-turned) > 1e-9 {
			t.Errorf("%s: p = %v, with the samples exchanged %v, want the same", tt.name, got, turned)
		}
	}
}
