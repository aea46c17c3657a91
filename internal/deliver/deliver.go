// Package deliver tells receivers of what happened: bodies by HTTP, each at least
// once, written anew for each attempt by who knows what they say.
//
// What is to be delivered waits in a [Queue] that nodes share. A node holds a
// receiver while it delivers to it, so that in the ordinary case each body is sent
// once, and in about the order of the events; a hold that nobody renews, since its
// node has died, ends by itself. A receiver that fails rests for a while, in which
// it costs the others nothing. A body that is not taken is sent again, less and less
// often, for about a day, and is then a dead letter.
//
// Where receivers may be is decided by the client that is passed: see package
// egress. Answers are looked at for their status alone.
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

// A Receiver is where bodies are sent to.
type Receiver struct {
	ID        string
	ProjectID string
	URL       string
	Failures  int // attempts in a row that failed
}

// A Job is something to tell.
type Job struct {
	ID       string // the same at each attempt
	Event    string
	Subject  string    // jobs about the same are sent one after the other
	Body     []byte    // what is sent, or what it is made of
	Attempts int       // so far
	Queued   time.Time // since when it waits; anew where it was asked for again
}

// Write returns the body and header of an attempt at a job.
type Write func(ctx context.Context, j Job) (body []byte, h http.Header, err error)

// A State is what became of a job.
type State string

// The states.
const (
	Pending   State = "pending"
	Delivered State = "delivered"
	Dead      State = "dead"
)

// A Result is what an attempt came to.
type Result struct {
	ReceiverID, JobID string
	Queued            time.Time // of the job, as it was sent: what was asked for again meanwhile is another
	State             State
	Attempts          int
	Status            int       // of the answer; 0 where there was none
	Error             string    // why not
	Due               time.Time // of the next attempt, if it is pending
	Ended             time.Time // else
}

// A Queue keeps jobs, for all nodes. All methods may be called at once.
type Queue interface {
	// DueReceivers returns ids of those that have a job which is due, do not rest and
	// are held by nobody: first those of projects of which the fewest are held, so that
	// none takes all hands for itself, and of these those that were held longest ago.
	DueReceivers(ctx context.Context, now time.Time, most int) ([]string, error)
	// HoldReceiver lets a holder alone send to a receiver, until a moment. One that
	// another holds, or that is gone or switched off, is problem.Conflict. Who holds it
	// already holds on.
	HoldReceiver(ctx context.Context, id, holder string, now, until time.Time) (Receiver, error)
	// DueJobs returns jobs of a receiver that are due, the oldest first.
	DueJobs(ctx context.Context, receiverID string, now time.Time, most int) ([]Job, error)
	// Settle writes what an attempt came to. A job that waits no more stays as it is, and
	// so does one that was queued anew since.
	Settle(ctx context.Context, r Result) error
	// ReleaseReceiver ends a hold, if it is the holder's, and says how the receiver
	// does.
	ReleaseReceiver(ctx context.Context, id, holder string, now time.Time, failures int, rests time.Time) error
	// Backlog tells how many jobs wait, and since when the oldest does: zero if none.
	Backlog(ctx context.Context) (n int, oldest time.Time, err error)
	// Clock returns the time that the queue has, for all nodes.
	Clock(ctx context.Context) (time.Time, error)
}

// Config says what a Deliverer works with.
type Config struct {
	Queue  Queue
	Client *http.Client // that follows no redirects, and dials nothing that it must not

	// Writer returns what writes to a receiver, as long as its turn lasts.
	Writer func(ctx context.Context, r Receiver) (Write, error)

	// Verdict says what an answer's status makes of a job: Pending is another attempt,
	// as long as there are any left. Nil means [Taken].
	Verdict func(status int) State

	Agent string // names us to receivers
	What  string // receivers are called so in the log; "" means "webhook"

	// Observe is told "delivered", "failed" or "dead" after each attempt. Nil tells
	// nobody.
	Observe func(result string)

	Log *slog.Logger     // nil means slog.Default()
	Now func() time.Time // nil means the Queue's clock
}

// How much is done at once, and how often is looked for more.
const (
	receivers = 16 // of a node
	lanes     = 4  // of a receiver
	batch     = 64
	turnFor   = 10 * time.Second // a receiver's turn begins attempts
	lookEvery = 500 * time.Millisecond
	holdFor   = 15 * time.Second // without a sign of life
	clockFor  = time.Minute      // a look at the queue's clock is good
)

// A Deliverer delivers. Make one with [New], then Run it, and end it with Shutdown.
type Deliverer struct {
	c      Config
	holder string // this node, as long as it lives
	more   chan struct{}
	quit   chan struct{} // closed by Shutdown
	idle   chan struct{} // closed once Run has ended
	once   sync.Once

	ahead   atomic.Int64 // of this machine's clock, the queue's
	waiting atomic.Int64
	oldest  atomic.Int64 // microseconds, 0 for none

	mu   sync.Mutex
	busy map[string]bool
}

// New makes a Deliverer.
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

// now returns the time of the queue, about.
func (d *Deliverer) now() time.Time {
	if d.c.Now != nil {
		return d.c.Now()
	}
	return time.Now().Add(time.Duration(d.ahead.Load()))
}

// Backlog tells how many jobs wait in the queue, and for how long the oldest does,
// as it was a minute ago at most.
func (d *Deliverer) Backlog() (n int, age time.Duration) {
	if us := d.oldest.Load(); us > 0 {
		age = max(0, d.now().Sub(time.UnixMicro(us)))
	}
	return int(d.waiting.Load()), age
}

// Run delivers until Shutdown, and until ctx ends: then attempts are cut off.
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

// Shutdown begins no more attempts, and waits until those that are under way are
// over, or ctx ends.
func (d *Deliverer) Shutdown(ctx context.Context) {
	d.once.Do(func() { close(d.quit) })
	select {
	case <-d.idle:
	case <-ctx.Done():
	}
}

// stopping reports whether no attempt is to begin any more.
func (d *Deliverer) stopping(ctx context.Context) bool {
	select {
	case <-d.quit:
		return true
	default:
		return ctx.Err() != nil
	}
}

// lookAround reads the clock and the length of the queue.
func (d *Deliverer) lookAround(ctx context.Context) error {
	before := time.Now()
	clock, err := d.c.Queue.Clock(ctx)
	if err != nil {
		return err // start says so
	}
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

// start begins with the receivers that are due, as many as this node has hands for.
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
			d.c.Log.Debug("looking for what is to be delivered", "error", err) // /readyz tells of the database
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
	default: // somebody has said so
	}
}

// hold holds a receiver; ok is false where another node does.
func (d *Deliverer) hold(ctx context.Context, id string) (r Receiver, ok bool) {
	now := d.now()
	r, err := d.c.Queue.HoldReceiver(ctx, id, d.holder, now, now.Add(holdFor))
	if err != nil && !errors.Is(err, problem.Conflict) && ctx.Err() == nil {
		d.c.Log.Error("holding a receiver", d.c.What, id, "error", err)
	}
	return r, err == nil
}
