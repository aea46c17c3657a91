package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/selvage/selvage/test/harness"
)

// A cost holds the measurements of one operation on PostgreSQL and Redis.
type cost struct {
	operation
	spending
	alone []time.Duration // durations when no other operation runs
}

// scaling measures the cost of operations on a node, PostgreSQL and Redis, and the data that the
// operations leave behind. It compares the queueing simulation with the server, and then computes
// the requirements of installations of several sizes.
func scaling(p *harness.Program, s settings, pinned bool, out io.Writer) {
	b := startBackend(p)
	w := newWorld(p, pinned, "", b.env()...)

	idle := measureIdle(p, s, b, w.PID())
	var costs []cost
	for _, op := range w.operations(p) {
		if _, ok := dailyUse[op.name]; ok && op.connections == 8 && s.only.MatchString(op.name) {
			costs = append(costs, measureCost(p, s, b, w.PID(), op, idle))
		}
	}
	printCosts(out, costs)

	g := measureGrowth(p, b, w)
	g.print(out)
	checkQueues(p, s, costs, out)
	printSizes(out, costs, g)
	harness.Sweep()
}

// measureIdle returns the costs during s.length without any operation.
func measureIdle(p *harness.Program, s settings, b *backend, node int) spending {
	before := b.spent(p, node, os.Getpid())
	time.Sleep(s.length)
	return b.spent(p, node, os.Getpid()).minus(before)
}

// measureCost measures an operation with all its connections, and then alone. It subtracts idle,
// the costs without any operation.
func measureCost(p *harness.Program, s settings, b *backend, node int, op operation, idle spending) cost {
	p.Logf("%s", op.title())
	c := cost{operation: op}
	tasks, wires := open(p, op)
	defer closeAll(wires)
	load(p, op, tasks, wires, warmUp, nil)

	before, began := b.spent(p, node, os.Getpid()), time.Now()
	took := load(p, op, tasks, wires, s.length, nil)
	elapsed := time.Since(began)
	if len(took) == 0 {
		p.Fatalf("%s: no operation ended in %v", op.name, s.length)
	}
	total := b.spent(p, node, os.Getpid()).minus(before)
	background := idle.times(float64(elapsed) / float64(s.length))
	c.spending = total.minus(background).times(1 / float64(len(took)))

	c.alone = load(p, op, tasks[:1], wires[:1], s.length, nil)
	if len(c.alone) == 0 {
		p.Fatalf("%s: no operation ended in %v", op.name, s.length)
	}
	return c
}

// open returns the tasks of an operation, and an open wire for each task.
func open(p *harness.Program, op operation) (tasks []task, wires []*wire) {
	for i := range op.connections {
		w, err := dial(op.address)
		if err != nil {
			p.Fatalf("%s: %v", op.name, err)
		}
		tasks, wires = append(tasks, op.task(i)), append(wires, w)
	}
	return tasks, wires
}

func closeAll(wires []*wire) {
	for _, w := range wires {
		w.conn.Close()
	}
}

func printCosts(out io.Writer, costs []cost) {
	fmt.Fprintln(out, "What one operation costs:")
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "operation\tnode, CPU ms\tPostgreSQL, CPU ms\tRedis, CPU ms\tRedis commands\tcommits\t"+
		"WAL bytes\taudit bytes\tother bytes\t")
	for _, c := range costs {
		fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%.3f\t%.1f\t%.2f\t%.0f\t%.0f\t%.0f\t\n", c.name, milliseconds(c.node),
			milliseconds(c.postgres), milliseconds(c.redis), c.commands, c.commits, c.walBytes, c.auditBytes,
			c.tableBytes)
	}
	_ = t.Flush() // a failed write to the terminal is ignored
}

// checkedLoads are the loads at which the simulation is compared with the server. Each is a
// fraction of the busiest core.
var checkedLoads = []float64{0.3, 0.5, 0.7}

// checkQueues starts operations at random times, as many independent people would. It compares
// their durations with a simulation of the same arrivals.
func checkQueues(p *harness.Program, s settings, costs []cost, out io.Writer) {
	fmt.Fprintln(out, "\nThe simulation and the server, with one core for the node and one for everything else:")
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "operation\tload\tper second\tp50 ms\tsimulated\tp99 ms\tsimulated\t")
	for _, c := range costs {
		if !slices.Contains(checkedOperations, c.name) {
			continue
		}
		for _, share := range checkedLoads {
			r := rand.New(rand.NewPCG(uint64(100*share), 1))
			rate := share / max(c.node, c.others()).Seconds()
			arrivals := poisson(r, rate, 3*s.length)

			p.Logf("%s, %.0f per second", c.name, rate)
			live := arrive(p, c.operation, arrivals)
			model := cluster{nodes: 1, cores: 1, database: 1, flush: c.flush()}
			simulated := simulate(model, arrivals, c.draw(r, c.others()))
			fmt.Fprintf(t, "%s\t%.0f %%\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", c.name, 100*share, rate,
				milliseconds(percentile(live, 0.5)), milliseconds(percentile(simulated, 0.5)),
				milliseconds(percentile(live, 0.99)), milliseconds(percentile(simulated, 0.99)))
		}
	}
	_ = t.Flush() // a failed write to the terminal is ignored
}

// checkedOperations lists a read, and a write that waits for the disk.
var checkedOperations = []string{"introspection", "code flow, no password"}

// others returns the CPU time outside the node.
func (c cost) others() time.Duration { return c.postgres + c.redis + c.load }

// wait returns how long the operation, when it runs alone, usually takes in addition to its CPU
// time.
func (c cost) wait() time.Duration {
	return max(0, percentile(c.alone, 0.5)-c.node-c.others())
}

// writes reports whether the operation waits for a commit. Operations that only read create no WAL.
func (c cost) writes() bool { return c.walBytes > 100 }

// flush returns how long the disk takes to make a commit durable.
func (c cost) flush() time.Duration {
	if !c.writes() {
		return 0
	}
	return c.wait()
}

// draw returns a function that returns the work of one operation after another. The work varies as
// much as the measured durations of an operation that runs alone. outside is the mean CPU time
// outside the node.
func (c cost) draw(r *rand.Rand, outside time.Duration) func() visit {
	var sum time.Duration
	for _, d := range c.alone {
		sum += d
	}
	mean := float64(sum) / float64(len(c.alone))

	return func() visit {
		factor := float64(c.alone[r.IntN(len(c.alone))]) / mean
		vary := func(d time.Duration) time.Duration { return time.Duration(factor * float64(d)) }
		v := visit{node: vary(c.node), database: vary(outside), commits: c.writes()}
		if !v.commits {
			v.pause = vary(c.wait())
		}
		return v
	}
}

// arrive begins an operation at each of the times in arrivals, and returns how long each took. If
// all connections are in use, an operation begins late, and its duration includes the delay.
func arrive(p *harness.Program, op operation, arrivals []time.Duration) []time.Duration {
	op.connections = 64
	tasks, wires := open(p, op)
	defer closeAll(wires)
	load(p, op, tasks, wires, warmUp, nil)

	due := make(chan int, len(arrivals))
	took := make([]time.Duration, len(arrivals))
	began := time.Now()
	var workers sync.WaitGroup
	for i := range tasks {
		workers.Go(func() {
			for n := range due {
				if err := tasks[i](wires[i]); err != nil {
					p.Fatalf("%s: %v", op.name, err)
				}
				took[n] = time.Since(began) - arrivals[n]
			}
		})
	}

	for i, at := range arrivals {
		time.Sleep(at - time.Since(began))
		due <- i
	}
	close(due)
	workers.Wait()
	return took
}

// A growth is the amount of data for one subscriber, recording or pending login, in bytes.
type growth struct{ subscriber, recording, pendingLogin float64 }

// measureGrowth creates subscribers, recordings and unfinished logins, and measures the data that
// each needs.
func measureGrowth(p *harness.Program, b *backend, w *world) (g growth) {
	const subscribers, recordings, logins = 5000, 300, 2000
	p.Logf("%d subscribers, %d recordings, %d unfinished logins", subscribers, recordings, logins)

	_, before := b.tableBytes(p)
	hash, err := bcrypt.GenerateFromPassword([]byte("fathom-lantern"), bcrypt.MinCost+6)
	if err != nil {
		p.Fatalf("hashing a password: %v", err)
	}
	people := strings.Builder{}
	people.WriteString("email,first_name,last_name,password_hash\n")
	for i := range subscribers {
		fmt.Fprintf(&people, "somebody%d@example.com,Ada,Lovelace,%s\n", i, hash)
	}
	w.Command(p, people.String(), "subscriber", "import", "--project", w.ID, "-")
	_, after := b.tableBytes(p)
	g.subscriber = (after - before) / subscribers

	before = after
	for i := range recordings {
		w.Upload(p, harness.Tone(4000+i, 10))
	}
	_, after = b.tableBytes(p)
	g.recording = (after - before) / recordings

	used := b.redisBytes(p)
	for range logins {
		if _, err := w.TryURL("GET", w.login.NewFlow(loginScope).URL()); err != nil {
			p.Fatalf("beginning a login: %v", err)
		}
	}
	g.pendingLogin = (b.redisBytes(p) - used) / logins
	return g
}

func (g growth) print(out io.Writer) {
	fmt.Fprintf(out, "\nBytes in PostgreSQL: %.0f for a subscriber, %.0f for a recording. "+
		"Bytes in Redis: %.0f for a login that has begun.\n", g.subscriber, g.recording, g.pendingLogin)
}
