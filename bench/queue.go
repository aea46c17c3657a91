package main

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// A cluster describes the servers that an operation passes through: first a node, then the database
// with its disk, then the node again.
type cluster struct {
	nodes, cores int // number of nodes, and cores of each node
	database     int // cores of the database; Redis and a load generator may share them
	flush        time.Duration
}

// A visit is the work that one operation causes on the servers of a cluster.
type visit struct {
	node, database time.Duration // CPU times
	pause          time.Duration // waiting time that does not depend on other operations
	commits        bool          // the operation waits for a flush of the disk
}

// simulate returns the durations of operations that arrive at the given times. cost returns the
// work of one operation. A proxy sends the operations to the nodes in turn. Each core works on one
// operation until it is done, in the order of arrival. A flush of the disk serves all operations
// that are waiting when it begins, like PostgreSQL's group commit.
func simulate(c cluster, arrivals []time.Duration, cost func() visit) []time.Duration {
	s := &simulation{}
	database := &station{cores: c.database}
	disk := &groupCommit{flush: c.flush}
	nodes := make([]*station, c.nodes)
	for i := range nodes {
		nodes[i] = &station{cores: c.cores}
	}

	took := make([]time.Duration, len(arrivals))
	for i, arrival := range arrivals {
		v, node := cost(), nodes[i%len(nodes)]
		finish := func() { took[i] = s.now - arrival + v.pause }
		respond := func() { node.serve(s, v.node-v.node/2, finish) }
		commit := func() {
			if !v.commits {
				respond()
				return
			}
			disk.wait(s, respond)
		}
		query := func() { database.serve(s, v.database, commit) }
		s.schedule(arrival, func() { node.serve(s, v.node/2, query) })
	}

	s.run()
	return took
}

// A simulation is a queue of events.
type simulation struct {
	now    time.Duration
	events eventHeap
	serial int
}

type event struct {
	time   time.Duration
	serial int // keeps simultaneous events in order
	do     func()
}

// schedule makes the simulation run do at the time t.
func (s *simulation) schedule(t time.Duration, do func()) {
	s.serial++
	heap.Push(&s.events, event{time: t, serial: s.serial, do: do})
}

// run runs all events in the order of their times.
func (s *simulation) run() {
	for len(s.events) > 0 {
		e := heap.Pop(&s.events).(event)
		s.now = e.time
		e.do()
	}
}

// An eventHeap implements [heap.Interface]. The earliest event comes first.
type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].time, h[j].time), cmp.Compare(h[i].serial, h[j].serial)) < 0
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

// A station is a set of cores with one queue.
type station struct {
	cores, busy int
	queue       []func()
}

// serve makes a core work for the time d, when one is free, and then runs done.
func (st *station) serve(s *simulation, d time.Duration, done func()) {
	work := func() {
		s.schedule(s.now+d, func() {
			st.release()
			done()
		})
	}
	if st.busy == st.cores {
		st.queue = append(st.queue, work)
		return
	}
	st.busy++
	work()
}

// release makes a core that has become free start the next operation in the queue.
func (st *station) release() {
	if len(st.queue) == 0 {
		st.busy--
		return
	}
	next := st.queue[0]
	st.queue = st.queue[1:]
	next()
}

// A groupCommit is a disk that makes all waiting transactions durable with one flush.
type groupCommit struct {
	flush   time.Duration
	busy    bool
	waiting []func()
}

// wait runs done after the end of the next flush that begins.
func (g *groupCommit) wait(s *simulation, done func()) {
	g.waiting = append(g.waiting, done)
	if !g.busy {
		g.begin(s)
	}
}

// begin flushes the waiting transactions, if there are any, and then the transactions that have
// arrived meanwhile.
func (g *groupCommit) begin(s *simulation) {
	served := g.waiting
	g.waiting = nil
	g.busy = len(served) > 0
	if !g.busy {
		return
	}
	s.schedule(s.now+g.flush, func() {
		for _, done := range served {
			done()
		}
		g.begin(s)
	})
}

// poisson returns the times of independent arrivals before the time length, with an average of rate
// arrivals per second.
func poisson(r *rand.Rand, rate float64, length time.Duration) (arrivals []time.Duration) {
	seconds := 0.0
	for {
		seconds += r.ExpFloat64() / rate
		arrival := time.Duration(seconds * float64(time.Second))
		if arrival >= length {
			return arrivals
		}
		arrivals = append(arrivals, arrival)
	}
}

// percentile returns the value below which the given share of the durations lies. It sorts the
// durations.
func percentile(durations []time.Duration, share float64) time.Duration {
	slices.Sort(durations)
	n := len(durations)
	return durations[min(n-1, int(share*float64(n)))]
}
