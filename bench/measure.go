package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A task performs an operation once on a wire and checks the responses.
type task func(w *wire) error

// An operation is something that the benchmark measures.
type operation struct {
	name        string
	address     string
	connections int
	goal        float64 // maximum CPU milliseconds on the reference machine; 0 means no goal
	work        work    // expensive steps that the goal includes
	pace        int     // operations per second while measuring latencies; 0 for no limit
	task        func(worker int) task
}

// once returns a task that sends one request.
func once(request []byte, status int, parts ...string) task {
	return func(w *wire) error {
		a, err := w.do(request)
		if err != nil {
			return err
		}
		return a.want(status, parts...)
	}
}

// A sample is the result of one measurement.
type sample struct {
	rate     float64 // operations per second
	cpu      float64 // milliseconds per operation
	p50, p99 float64 // latencies in milliseconds
}

// warmUp is how long the load runs before each measurement.
const warmUp = 300 * time.Millisecond

// measure repeats an operation for the given time. If gate is not nil, measure calls it before each
// repetition, and stops when it returns false.
func measure(p *harness.Program, op operation, pid int, length time.Duration, gate func() bool) sample {
	var (
		tasks = make([]task, op.connections)
		wires = make([]*wire, op.connections)
		err   error
	)
	for i := range op.connections {
		tasks[i] = op.task(i)
		if wires[i], err = dial(op.address); err != nil {
			p.Fatalf("%s: %v", op.name, err)
		}
		defer wires[i].conn.Close()
	}

	if gate == nil {
		load(p, op, tasks, wires, warmUp, nil)
	}

	before, began := cpu(p, pid), time.Now()
	took := load(p, op, tasks, wires, length, gate)
	elapsed, used := time.Since(began), cpu(p, pid)-before

	slices.Sort(took)
	n := len(took)
	if n == 0 {
		p.Fatalf("%s: not one operation ended in %v", op.name, length)
	}

	return sample{
		rate: float64(n) / elapsed.Seconds(),
		cpu:  milliseconds(used) / float64(n),
		p50:  milliseconds(took[n/2]),
		p99:  milliseconds(took[n*99/100]),
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// load repeats each task on its own wire, and returns how long each repetition took. A wrong
// response ends the benchmark.
func load(
	p *harness.Program, op operation, tasks []task, wires []*wire, length time.Duration, gate func() bool,
) []time.Duration {
	var (
		over  atomic.Bool
		took  = make([][]time.Duration, len(tasks))
		fault atomic.Pointer[error]
		wg    sync.WaitGroup
	)

	timer := time.AfterFunc(length, func() { over.Store(true) })
	defer timer.Stop()

	for i := range tasks {
		wg.Go(func() {
			for !over.Load() && (gate == nil || gate()) {
				began := time.Now()
				if err := tasks[i](wires[i]); err != nil {
					fault.Store(&err)
					over.Store(true)
					return
				}
				took[i] = append(took[i], time.Since(began))
			}
		})
	}

	wg.Wait()
	if err := fault.Load(); err != nil {
		p.Fatalf("%s: %v", op.name, *err)
	}
	return slices.Concat(took...)
}

// measurePaced measures latencies at a fixed rate. A slow response does not delay later requests.
func measurePaced(p *harness.Program, op operation, pid int, length time.Duration) sample {
	due := make(chan struct{}, op.pace) // the requests of up to one second may wait

	stop := make(chan struct{})
	go func() {
		defer close(due)
		began, sent := time.Now(), 0
		tick := time.NewTicker(200 * time.Microsecond)
		defer tick.Stop()

		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			for want := int(time.Since(began).Seconds() * float64(op.pace)); sent < want; sent++ {
				select {
				case due <- struct{}{}:
				default: // too many requests are waiting, so the measured rate becomes lower
				}
			}
		}
	}()

	time.AfterFunc(length, func() { close(stop) })
	op.connections = 64
	s := measure(p, op, pid, length, func() bool { _, ok := <-due; return ok })

	if s.rate < 0.9*float64(op.pace) {
		p.Logf("%s: reached only %.0f of %d operations per second", op.name, s.rate, op.pace)
	}
	return s
}

// median returns a sample with the median of each figure.
func median(samples []sample) sample {
	pick := func(value func(sample) float64) float64 { return middle(samples, value) }
	return sample{
		rate: pick(func(s sample) float64 { return s.rate }),
		cpu:  pick(func(s sample) float64 { return s.cpu }),
		p50:  pick(func(s sample) float64 { return s.p50 }),
		p99:  pick(func(s sample) float64 { return s.p99 }),
	}
}

// middle calls value for each item, and returns the median of the results.
func middle[T any](all []T, value func(T) float64) float64 {
	values := make([]float64, len(all))
	for i, one := range all {
		values[i] = value(one)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// title returns the name of the operation with its number of connections.
func (op operation) title() string { return fmt.Sprintf("%s, c=%d", op.name, op.connections) }
