// Package deliver sends events to receivers as HTTP requests. Each body is delivered at least once.
// For each attempt, a [Write] function produces the body again.
//
// Jobs wait in a [Queue] that all nodes share. While a node delivers jobs to a receiver, it holds the
// receiver, so that each body is normally sent only once, and roughly in the order of the events. If a
// node dies, its holds expire. A failing receiver is left alone for a while, and does not delay other
// receivers. If a receiver does not accept a body, the job is retried with growing delays for most
// of a day, and then becomes a dead letter.
//
// The HTTP client decides which addresses it connects to; see package egress. Only the status of a
// response and its Retry-After header have an effect. The beginning of the body is kept for
// display.
package deliver

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/internal/dbclock"
	"github.com/selvage/selvage/internal/problem"
)

// A Receiver is an endpoint to which bodies are sent.
type Receiver struct {
	ID        string
	ProjectID string
	URL       string
	Failures  int // consecutive failed attempts
}

// A Job is one event to deliver to a receiver.
type Job struct {
	ID       string // the same in each attempt
	Event    string
	Subject  string    // jobs with the same subject are sent one after the other
	Body     []byte    // the body to send, or the data from which Write produces it
	Attempts int       // attempts so far
	Queued   time.Time // when the job was queued, or last requested again
}

// A Message is the request to send in one attempt at a job.
type Message struct {
	Method string // "" means POST
	URL    string // "" means the URL of the receiver
	Header http.Header
	Body   []byte
}

// Write returns the request to send in an attempt at a job.
type Write func(ctx context.Context, j Job) (Message, error)

// A Result is the outcome of an attempt.
type Result struct {
	ReceiverID, JobID string
	Queued            time.Time // the Queued of the attempted job, which may have been requested again since then
	State             State
	Attempts          int
	Status            int    // the status of the response; 0 if there was none
	Error             string // why there was no response
	Refused           string // the address that the HTTP client refused, or ""; only for operators of the installation
	Response          string // the beginning of the response's body, as plain text
	Took              time.Duration
	Due               time.Time // when the next attempt begins, if State is Pending
	Ended             time.Time // when the attempt ended, if it was the last one
}

// A Queue keeps jobs for all nodes. Its methods are safe for concurrent use.
type Queue interface {
	// DueReceivers returns the ids of receivers that have a due job, are not resting and are not
	// held by any node. The receivers of projects with the fewest held receivers come first, so
	// that no project occupies all workers. Among these, the receiver that was last held the
	// longest time ago comes first.
	DueReceivers(ctx context.Context, now time.Time, most int) ([]string, error)
	// HoldReceiver reserves a receiver for holder until the given time, so that no other node sends
	// to it. If holder already holds the receiver, HoldReceiver extends the hold. It returns
	// problem.Conflict if another node holds the receiver, or if the receiver is deleted or
	// disabled.
	HoldReceiver(ctx context.Context, id, holder string, now, until time.Time) (Receiver, error)
	// DueJobs returns a receiver's due jobs, oldest first. The parameter most limits their number.
	DueJobs(ctx context.Context, receiverID string, now time.Time, most int) ([]Job, error)
	// Settle stores the outcome of an attempt. It leaves the job unchanged if it is no longer
	// pending, or was requested again since the attempt began.
	Settle(ctx context.Context, r Result) error
	// ReleaseReceiver ends the hold if holder still has it. It also stores the receiver's number of
	// failures, and the end of its pause. If the receiver was changed or woken in the meantime,
	// it does not pause, and its number of failures does not increase.
	ReleaseReceiver(ctx context.Context, id, holder string, now time.Time, failures int, rests time.Time) error
	// Backlog returns the number of waiting jobs, and when the oldest was queued. oldest is zero if
	// no job is waiting.
	Backlog(ctx context.Context) (n int, oldest time.Time, err error)
	// Clock returns the queue's time, which all nodes share.
	Clock(ctx context.Context) (time.Time, error)
}

// Config configures a Deliverer.
type Config struct {
	Queue  Queue
	Client *http.Client // must neither follow redirects nor connect to forbidden addresses

	// Writer returns the Write function for one turn with a receiver.
	Writer func(ctx context.Context, r Receiver) (Write, error)

	// Verdict returns the state of a job after a response with the given status; 0 means that there
	// was no response. Pending means that the job is retried, unless this was the last attempt. If
	// Verdict is nil, [Taken] is used.
	Verdict func(status int) State

	Agent string // the User-Agent of requests
	What  string // the word for a receiver in log lines; "" means "webhook"

	// Observe is called with "delivered", "failed" or "dead" after each attempt. It may be
	// nil.
	Observe func(result string)

	Log *slog.Logger     // nil means slog.Default()
	Now func() time.Time // nil means the Queue's clock
}

// Limits on concurrent work, and intervals.
const (
	receivers = 16 // receivers that a node serves at the same time
	lanes     = 4  // concurrent requests to a receiver
	batch     = 64
	turnFor   = 10 * time.Second // how long new attempts may start in a turn
	lookEvery = 500 * time.Millisecond
	holdFor   = 15 * time.Second // how long a hold lasts without being renewed
	clockFor  = time.Minute      // how often the queue's clock is read
)

// A Deliverer delivers jobs. Create it with [New], call Run, and stop it with Shutdown.
type Deliverer struct {
	c      Config
	holder string // identifies this process
	more   chan struct{}
	quit   chan struct{} // closed by Shutdown
	idle   chan struct{} // closed once Run has ended
	once   sync.Once

	clock   dbclock.Clock // the queue's
	waiting atomic.Int64
	oldest  atomic.Int64 // when the oldest waiting job was queued, in Unix microseconds; 0 if none is waiting

	mu   sync.Mutex
	busy map[string]bool
}

// New returns a Deliverer.
func New(c Config) *Deliverer {
	if c.Observe == nil {
		c.Observe = func(string) {}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Verdict == nil {
		c.Verdict = Taken
	}
	if c.What == "" {
		c.What = "webhook"
	}

	return &Deliverer{
		c:      c,
		holder: rand.Text(),
		busy:   make(map[string]bool),
		more:   make(chan struct{}, 1),
		quit:   make(chan struct{}),
		idle:   make(chan struct{}),
	}
}

// now returns the approximate time of the queue's clock.
func (d *Deliverer) now() time.Time {
	if d.c.Now != nil {
		return d.c.Now()
	}
	return d.clock.Now()
}

// Backlog returns how many jobs are waiting in the queue, and how long the oldest has waited. The
// numbers are at most a minute old, unless the queue is unavailable.
func (d *Deliverer) Backlog() (n int, age time.Duration) {
	if us := d.oldest.Load(); us > 0 {
		age = max(0, d.now().Sub(time.UnixMicro(us)))
	}
	return int(d.waiting.Load()), age
}

// Run delivers jobs until Shutdown is called or ctx is done. If ctx is done, Run aborts the running
// attempts.
func (d *Deliverer) Run(ctx context.Context) {
	defer close(d.idle)
	var work sync.WaitGroup
	defer work.Wait()

	tick := time.NewTicker(lookEvery)
	defer tick.Stop()

	var looked time.Time
	for {
		if time.Since(looked) > clockFor || d.clock.Jumped() {
			if d.readQueue(ctx) == nil {
				looked = time.Now()
			}
		}

		d.start(ctx, &work)
		select {
		case <-ctx.Done():
			return
		case <-d.quit:
			return
		case <-tick.C:
		case <-d.more:
		}
	}
}

// Shutdown prevents new attempts. It returns when the running attempts have ended, or when ctx is
// done.
func (d *Deliverer) Shutdown(ctx context.Context) {
	d.once.Do(func() { close(d.quit) })
	select {
	case <-d.idle:
	case <-ctx.Done():
	}
}

// stopping reports whether no new attempts may start.
func (d *Deliverer) stopping(ctx context.Context) bool {
	select {
	case <-d.quit:
		return true
	default:
		return ctx.Err() != nil
	}
}

// readQueue reads and keeps the queue's clock and backlog.
func (d *Deliverer) readQueue(ctx context.Context) error {
	if err := d.clock.Read(ctx, d.c.Queue.Clock); err != nil {
		return err // start logs database errors
	}
	n, oldest, err := d.c.Queue.Backlog(ctx)
	if err != nil {
		return err
	}

	d.waiting.Store(int64(n))
	d.oldest.Store(0)
	if !oldest.IsZero() {
		d.oldest.Store(oldest.UnixMicro())
	}
	return nil
}

// start serves due receivers, up to the number of free workers on this node.
func (d *Deliverer) start(ctx context.Context, work *sync.WaitGroup) {
	d.mu.Lock()
	free := receivers - len(d.busy)
	d.mu.Unlock()
	if free == 0 || d.stopping(ctx) {
		return
	}

	ids, err := d.c.Queue.DueReceivers(ctx, d.now(), free)
	if err != nil {
		if ctx.Err() == nil {
			// This is not logged as an error: /readyz already reports that the database is
			// unavailable.
			d.c.Log.Debug("finding due deliveries", "error", err)
		}
		return
	}

	for _, id := range ids {
		if !d.take(id) {
			continue
		}
		work.Go(func() {
			d.serve(ctx, id)
			d.leave(id)
		})
	}
}

func (d *Deliverer) take(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy[id] {
		return false
	}
	d.busy[id] = true
	return true
}

func (d *Deliverer) leave(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.busy, id)
	select {
	case d.more <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// hold holds a receiver, or extends the hold. ok is false if that is not possible.
func (d *Deliverer) hold(ctx context.Context, id string) (r Receiver, ok bool) {
	now := d.now()
	r, err := d.c.Queue.HoldReceiver(ctx, id, d.holder, now, now.Add(holdFor))
	if err != nil && !errors.Is(err, problem.Conflict) && ctx.Err() == nil {
		d.c.Log.Error("holding a receiver", d.c.What, id, "error", err)
	}
	return r, err == nil
}
