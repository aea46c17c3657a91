package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/selvage/selvage/test/harness"
)

// logins signs in from many browsers at the same time, two per CPU. It compares the server's CPU
// time with the CPU time of the hashes alone. The ratio of the two is the server's login rate as a
// fraction of the rate that hashing alone would permit.
func (w *world) logins(length time.Duration) {
	const wanted = 0.85
	hash := hashTime(length / 2)
	var done atomic.Int64
	used, began := w.cpu(), time.Now()
	w.crowd(2*runtime.GOMAXPROCS(0), length, func() {
		fresh := w.guesser()
		fresh.try(w.sub.Email, w.sub.Password)
		done.Add(1)
	})

	cpu := (w.cpu() - used) / time.Duration(max(1, done.Load()))
	rate := float64(done.Load()) / time.Since(began).Seconds()
	fmt.Printf("        CPU time: %v for argon2id alone, %v for a login (three requests); "+
		"%.0f logins/s, with the clients on the same machine\n",
		hash.Round(10*time.Microsecond), cpu.Round(10*time.Microsecond), rate)
	share := float64(hash) / float64(cpu)
	w.check(share >= wanted, "the login rate is %.0f %% of the rate of argon2id alone, want at least %.0f %%",
		100*share, 100*wanted)
}

// spraying fetches the subscriber info 100 times a second: first on an otherwise idle server, and
// then while other clients guess passwords as fast as they can.
func (w *world) spraying(length time.Duration) {
	const allowed = 10 * time.Millisecond
	quiet := w.verifications(length)

	var sprayed []time.Duration
	var measured sync.WaitGroup
	stop := make(chan struct{})
	measured.Go(func() {
		sprayed = w.verifications(length)
		close(stop)
	})

	var crowd sync.WaitGroup
	var guesses atomic.Int64
	for i := range 16 {
		g := w.guesser()
		crowd.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					g.try(fmt.Sprintf("person%d-%d@example.com", i, n), "Summer2026!")
					guesses.Add(1)
				}
			}
		})
	}

	measured.Wait()
	crowd.Wait()

	idle, busy := quantile(quiet, 0.99), quantile(sprayed, 0.99)
	fmt.Printf("        verifying a token takes %v (p99) on an idle server, and %v under %.0f guesses a second\n",
		idle, busy, float64(guesses.Load())/length.Seconds())
	w.check(busy-idle <= allowed, "password spraying slows down other requests by %v (p99), want at most %v",
		busy-idle, allowed)
}

// verifications sends 100 requests a second with the same token, and returns their sorted
// latencies.
func (w *world) verifications(length time.Duration) []time.Duration {
	var took []time.Duration
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(length); time.Now().Before(deadline); <-tick.C {
		began := time.Now()
		w.Get(w.p, "/api/fabric/subscriber/info", harness.Bearer(w.sat.Token)).Want(w.p, 200)
		took = append(took, time.Since(began))
	}
	return slices.Sorted(slices.Values(took))
}

// crowd runs do repeatedly in n goroutines until length has passed.
func (w *world) crowd(n int, length time.Duration, do func()) {
	var running sync.WaitGroup
	deadline := time.Now().Add(length)
	for range n {
		running.Go(func() {
			for time.Now().Before(deadline) {
				do()
			}
		})
	}
	running.Wait()
}

// hashTime returns the CPU time of one hash with the server's parameters, while all CPUs are busy
// hashing.
func hashTime(length time.Duration) time.Duration {
	var done atomic.Int64
	var hashing sync.WaitGroup
	used, deadline := ownCPU(), time.Now().Add(length)
	for range runtime.GOMAXPROCS(0) {
		hashing.Go(func() {
			for time.Now().Before(deadline) {
				argon2.IDKey([]byte("fathom-lantern"), make([]byte, 16), 2, 19*1024, 1, 32)
				done.Add(1)
			}
		})
	}
	hashing.Wait()
	return (ownCPU() - used) / time.Duration(done.Load())
}

// ownCPU returns the CPU time of this process.
func ownCPU() time.Duration { return cpuOf(os.Getpid()) }

// cpu returns the CPU time of the server and of the process that computes its hashes.
func (w *world) cpu() (sum time.Duration) {
	for _, pid := range harness.Family(w.PID()) {
		sum += cpuOf(pid)
	}
	return sum
}

// cpuOf returns the user and system time of a process. In /proc, these times are in hundredths of a
// second.
func cpuOf(pid int) time.Duration {
	fields := harness.Stat(pid)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
