package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestSimulateQueue compares the simulation with the exact mean of queues for which a formula
// exists.
func TestSimulateQueue(t *testing.T) {
	const service = time.Millisecond
	tests := []struct {
		name string
		load float64 // fraction of time in which the core is busy
		draw func(*rand.Rand) float64
		want float64 // mean time, as a multiple of the service time
	}{
		{"M/M/1 at 50 %", 0.5, (*rand.Rand).ExpFloat64, 2},
		{"M/M/1 at 80 %", 0.8, (*rand.Rand).ExpFloat64, 5},
		{"M/D/1 at 80 %", 0.8, func(*rand.Rand) float64 { return 1 }, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			arrivals := poisson(r, tt.load/service.Seconds(), 100*time.Second)
			took := simulate(cluster{nodes: 1, cores: 1, database: 1}, arrivals, func() visit {
				return visit{database: time.Duration(tt.draw(r) * float64(service))}
			})

			var sum time.Duration
			for _, d := range took {
				sum += d
			}
			mean := float64(sum) / float64(len(took)) / float64(service)
			if math.Abs(mean/tt.want-1) > 0.05 {
				t.Errorf("operations take %.2f service times on average, want %.2f", mean, tt.want)
			}
		})
	}
}

// TestSimulateFlush checks that one flush serves all waiting transactions.
func TestSimulateFlush(t *testing.T) {
	c := cluster{nodes: 1, cores: 1, database: 1, flush: 10 * time.Millisecond}
	arrivals := []time.Duration{0, 1 * time.Millisecond, 2 * time.Millisecond, 30 * time.Millisecond}
	took := simulate(c, arrivals, func() visit { return visit{commits: true} })

	// The second and third transactions share the flush that begins when the first one ends.
	want := []time.Duration{10 * time.Millisecond, 19 * time.Millisecond, 18 * time.Millisecond, 10 * time.Millisecond}
	if !slices.Equal(took, want) {
		t.Errorf("the transactions took %v, want %v", took, want)
	}
}
