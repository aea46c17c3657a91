// Package deliver sends events to receivers as HTTP requests. Each body is delivered at least
// once. The receiver's Writer builds it again for each attempt.
//
// Jobs wait in a [Queue] that all nodes share. A node holds a receiver while it delivers to
// it, so that each body is normally sent once, and roughly in the order of the events. A hold
// expires if its node dies and no longer renews it. A receiver that fails is left alone for a
// while and does not delay the others. A body that is not accepted is retried with growing
// delays for about a day, and then becomes a dead letter.
//
// The client decides which addresses receivers may have: see package egress. Only the status
// of a response counts.
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

	"github.com/selvage/selvage/internal/problem"
)

// A Receiver is an endpoint that bodies are sent to.
type Receiver struct {
	ID        string
	ProjectID string
	URL       string
	Failures  int // consecutive failed attempts
}

// A Job is one event to deliver to a receiver.
type Job struct {
	ID       string // the same at each attempt
	Event    string
	Subject  string    // jobs with the same subject are sent one after the other
	Body     []byte    // what is sent, or what Write builds it from
	Attempts int       // so far
	Queued   time.Time // when it was queued, or requested again
}

// Write returns the body and headers for an attempt at a job.
type Write func(ctx context.Context, j Job) (body []byte, h http.Header, err error)

// A State is the state of a job.
type State string

// The states.
const (
	Pending   State = "pending"
	Delivered State = "delivered"
	Dead      State = "dead"
)

// A Result is the outcome of an attempt.
type Result struct {
	ReceiverID, JobID string
	Queued            time.Time // the job's, as it was sent; it differs if the job was requested again meanwhile
	State             State
	Attempts          int
	Status            int       // of the response; 0 if there was none
	Error             string    // why there was no response
	Due               time.Time // the next attempt, if State is Pending
	Ended             time.Time // otherwise
}

// A Queue keeps jobs for all nodes. Its methods may be called concurrently.
type Queue interface {
	// DueReceivers returns ids of receivers that have a due job, are not resting and are
	// held by no node. Receivers of the projects with the fewest holds come first, so that
	// no project takes all workers. Among these, those held longest ago come first.
	DueReceivers(ctx context.Context, now time.Time, most int) ([]string, error)
	// HoldReceiver reserves a receiver for holder until a time: no other may send to it. It
	// returns problem.Conflict if another holder has the receiver, or if the receiver is
	// deleted or disabled. A holder that already has it extends its hold.
	HoldReceiver(ctx context.Context, id, holder string, now, until time.Time) (Receiver, error)
	// DueJobs returns a receiver's due jobs, the oldest first.
	DueJobs(ctx context.Context, receiverID string, now time.Time, most int) ([]Job, error)
	// Settle stores the outcome of an attempt. It does not change a job that is no longer
	// waiting, or that was queued again since.
	Settle(ctx context.Context, r Result) error
	// ReleaseReceiver ends a hold if holder has it, and stores the receiver's failures and
	// how long it rests.
	ReleaseReceiver(ctx context.Context, id, holder string, now time.Time, failures int, rests time.Time) error
	// Backlog returns how many jobs wait, and when the oldest was queued: zero if none.
	Backlog(ctx context.Context) (n int, oldest time.Time, err error)
	// Clock returns the queue's time, which is the same for all nodes.
	Clock(ctx context.Context) (time.Time, error)
}

// Config configures a Deliverer.
type Config struct {
	Queue  Queue
	Client *http.Client // must not follow redirects or dial forbidden addresses

	// Writer returns the Write function for a receiver's turn.
	Writer func(ctx context.Context, r Receiver) (Write, error)

	// Verdict returns the state of a job after a response with this status. Pending means
	// another attempt, if any are left. Nil means [Taken].
	Verdict func(status int) State

	Agent string // the User-Agent
	What  string // what the log calls receivers; "" means "webhook"

	// Observe is called with "delivered", "failed" or "dead" after each attempt. It may be
	// nil.
	Observe func(result string)

	Log *slog.Logger     // nil means slog.Default()
	Now func() time.Time // nil means the Queue's clock
}

// Limits of concurrent work, and intervals.
const (
	receivers = 16 // receivers that a node serves at once
	lanes     = 4  // concurrent requests to a receiver
	batch     = 64
	turnFor   = 10 * time.Second // how long a receiver's turn starts attempts
	lookEvery = 500 * time.Millisecond
	holdFor   = 15 * time.Second // how long a hold lasts unless it is renewed
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

	ahead   atomic.Int64 // how far the queue's clock is ahead of this machine's
	waiting atomic.Int64
	oldest  atomic.Int64 // microseconds, 0 for none

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
		c: c, holder: rand.Text(), busy: make(map[string]bool),
		more: make(chan struct{}, 1), quit: make(chan struct{}), idle: make(chan struct{}),
	}
}

// now returns the queue's approximate time.
func (d *Deliverer) now() time.Time {
	if d.c.Now != nil {
		return d.c.Now()
	}
	return time.Now().Add(time.Duration(d.ahead.Load()))
}

// Backlog returns how many jobs wait in the queue and how long the oldest has waited. The
// numbers are at most a minute old.
func (d *Deliverer) Backlog() (n int, age time.Duration) {
	if us := d.oldest.Load(); us > 0 {
		age = max(0, d.now().Sub(time.UnixMicro(us)))
	}
	return int(d.waiting.Load()), age
}

// Run delivers until Shutdown is called or ctx ends. When ctx ends, running attempts are aborted.
func (d *Deliverer) Run(ctx context.Context) {
	defer close(d.idle)
	var work sync.WaitGroup
	defer work.Wait()

	tick := time.NewTicker(lookEvery)
	defer tick.Stop()

	var looked time.Time
	for {
		if time.Since(looked) > clockFor {
			if d.lookAround(ctx) == nil {
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

// Shutdown starts no more attempts. It returns when the running ones have ended, or when ctx
// ends.
func (d *Deliverer) Shutdown(ctx context.Context) {
	d.once.Do(func() { close(d.quit) })
	select {
	case <-d.idle:
	case <-ctx.Done():
	}
}

// stopping reports whether no more attempts may start.
func (d *Deliverer) stopping(ctx context.Context) bool {
	select {
	case <-d.quit:
		return true
	default:
		return ctx.Err() != nil
	}
}

// lookAround reads the queue's clock and length.
func (d *Deliverer) lookAround(ctx context.Context) error {
	before := time.Now()
	clock, err := d.c.Queue.Clock(ctx)
	if err != nil {
		return err // start logs database errors
	}

	// Assume that the clock was read halfway through the call.
	d.ahead.Store(int64(clock.Sub(before.Add(time.Since(before) / 2))))

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

// start serves due receivers, as many as this node has free workers for.
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
			// /readyz reports that the database is unavailable.
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

// hold holds a receiver. ok is false if another node holds it.
func (d *Deliverer) hold(ctx context.Context, id string) (r Receiver, ok bool) {
	now := d.now()
	r, err := d.c.Queue.HoldReceiver(ctx, id, d.holder, now, now.Add(holdFor))
	if err != nil && !errors.Is(err, problem.Conflict) && ctx.Err() == nil {
		d.c.Log.Error("claiming a receiver", d.c.What, id, "error", err)
	}
	return r, err == nil
}
