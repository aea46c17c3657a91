package mail

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/internal/dbclock"
	"github.com/selvage/selvage/internal/problem"
)

// Config configures a Post.
type Config struct {
	Queue     Queue
	Transport Transport
	Sender    Sender

	// Write returns the content of a letter, and creates its link. If the letter has no recipient,
	// or no longer has one, Write returns problem.NotFound, and the letter is dropped.
	Write func(ctx context.Context, l Letter) (Draft, error)

	// Observe is called after each attempt, with "failed", "dropped" or the letter's new State. It
	// may be nil.
	Observe func(result string)

	Log *slog.Logger // nil means slog.Default()
}

const (
	workers    = 4                      // how many letters are sent at the same time
	lookEvery  = 500 * time.Millisecond // how often Run looks for due letters
	countEvery = 15 * time.Second       // how often Run reads the backlog and the queue's clock
	leaseFor   = 2 * time.Minute        // must be more than sendFor
)

// delays are the waits after each failed attempt. If the attempt after the last wait also fails,
// the letter becomes a dead letter. Together, the delays last about a day.
var delays = [...]time.Duration{
	5 * time.Second,
	30 * time.Second,
	2 * time.Minute,
	10 * time.Minute,
	30 * time.Minute,
	time.Hour,
	3 * time.Hour,
	6 * time.Hour,
	12 * time.Hour,
}

// delay returns the wait after the given number of attempts, with up to 20 % of jitter. ok is false
// after the last attempt.
func delay(attempts int) (d time.Duration, ok bool) {
	if attempts > len(delays) {
		return 0, false
	}
	d = delays[max(attempts, 1)-1]
	return d + time.Duration((rand.Float64()*2-1)*float64(d)/5), true
}

// A Post sends the letters of a queue. Create it with [New], call Run, and stop it with Shutdown.
type Post struct {
	c       Config
	more    chan struct{} // receives a value when an attempt has ended, so that the next begins at once
	quit    chan struct{} // closed by Shutdown
	idle    chan struct{} // closed when Run returns
	once    sync.Once
	backlog atomic.Pointer[Backlog]
	clock   dbclock.Clock // the queue's; due times and leases are compared with it
}

// New returns a Post.
func New(c Config) *Post {
	if c.Observe == nil {
		c.Observe = func(string) {}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}

	p := &Post{
		c:    c,
		more: make(chan struct{}, 1),
		quit: make(chan struct{}),
		idle: make(chan struct{}),
	}
	p.backlog.Store(&Backlog{})
	return p
}

// Backlog returns the backlog as it was at most 15 seconds ago, or earlier if the queue has been
// unavailable since then.
func (p *Post) Backlog() Backlog { return *p.backlog.Load() }

// Run sends letters until Shutdown is called or ctx is done. If ctx is done, Run aborts the running
// attempts.
func (p *Post) Run(ctx context.Context) {
	defer close(p.idle)
	var attempts sync.WaitGroup
	defer attempts.Wait()

	tick := time.NewTicker(lookEvery)
	defer tick.Stop()

	busy := make(chan struct{}, workers) // has one value for each attempt
	var counted time.Time
	for {
		if time.Since(counted) > countEvery || p.clock.Jumped() {
			if p.readQueue(ctx) == nil { // /readyz reports an error
				counted = time.Now()
			}
		}

		p.start(ctx, &attempts, busy)
		select {
		case <-ctx.Done():
			return
		case <-p.quit:
			return
		case <-tick.C:
		case <-p.more:
		}
	}
}

// readQueue reads and keeps the queue's clock and backlog.
func (p *Post) readQueue(ctx context.Context) error {
	if err := p.clock.Read(ctx, p.c.Queue.Clock); err != nil {
		return err
	}
	b, err := p.c.Queue.LetterBacklog(ctx)
	if err != nil {
		return err
	}
	p.backlog.Store(&b)
	return nil
}

// Shutdown prevents new attempts. It returns when the running attempts have ended, or when ctx is
// done.
func (p *Post) Shutdown(ctx context.Context) {
	p.once.Do(func() { close(p.quit) })
	select {
	case <-p.idle:
	case <-ctx.Done():
	}
}

// start takes and sends due letters, up to the number of free workers.
func (p *Post) start(ctx context.Context, attempts *sync.WaitGroup, busy chan struct{}) {
	free := workers - len(busy)
	if free == 0 || ctx.Err() != nil {
		return
	}

	now := p.clock.Now()
	letters, err := p.c.Queue.TakeLetters(ctx, now, now.Add(leaseFor), free)
	if err != nil {
		if ctx.Err() == nil {
			p.c.Log.Debug("finding due emails", "error", err)
		}
		return
	}

	for _, l := range letters {
		busy <- struct{}{}
		attempts.Go(func() {
			p.attempt(ctx, l)
			<-busy
			select {
			case p.more <- struct{}{}:
			default: // a wake-up is already pending
			}
		})
	}
}

// attempt sends a letter once and stores the outcome.
func (p *Post) attempt(ctx context.Context, l Letter) {
	err := p.send(ctx, l)
	if err != nil && ctx.Err() != nil {
		return // this node aborted the attempt; the lease expires
	}

	r := p.settled(l, err)
	// Store the outcome even if the node is stopping.
	if err := p.c.Queue.SettleLetter(context.WithoutCancel(ctx), r); err != nil {
		p.c.Log.Error("storing the result of an email; it will be sent again", "mail", l.ID, "error", err)
		return
	}
	p.report(l, r)
}

func (p *Post) send(ctx context.Context, l Letter) error {
	d, err := p.c.Write(ctx, l)
	if err != nil {
		return err
	}
	m, err := d.write(l.ID, p.c.Sender)
	if err != nil {
		return err
	}
	return p.c.Transport.Send(ctx, m)
}

// settled returns the outcome of an attempt.
func (p *Post) settled(l Letter, err error) Result {
	r := Result{ID: l.ID, State: Sent, Ended: p.clock.Now()}
	if err == nil {
		if _, boxed := p.c.Transport.(*Box); boxed {
			r.State = Kept
		}
		return r
	}

	if errors.Is(err, problem.NotFound) {
		r.Dropped = true
		return r
	}

	r.State, r.Error = Dead, clip(err.Error())
	if wait, again := delay(l.Attempts); again && !Refused(err) {
		r.State, r.Due, r.Ended = Pending, r.Ended.Add(wait), time.Time{}
	}
	return r
}

// report passes the outcome to Observe, and logs failures. It never logs a letter's content.
func (p *Post) report(l Letter, r Result) {
	switch {
	case r.Dropped:
		p.c.Observe("dropped")
	case r.State == Sent, r.State == Kept:
		p.c.Observe(string(r.State))
		p.c.Log.Debug("mail "+string(r.State), "mail", l.ID, "kind", string(l.Kind), "attempts", l.Attempts)
	case r.State == Dead:
		p.c.Observe("dead")
		p.c.Log.Warn("gave up sending an email; `selvage mail retry` tries again",
			"mail", l.ID, "kind", string(l.Kind), "attempts", l.Attempts, "error", r.Error)
	default:
		p.c.Observe("failed")
		p.c.Log.Warn("sending an email failed; it will be retried",
			"mail", l.ID, "kind", string(l.Kind), "attempts", l.Attempts, "next", r.Due, "error", r.Error)
	}
}

// Deliver sends a draft immediately, bypassing the queue, for callers that need the result.
func (p *Post) Deliver(ctx context.Context, id string, d Draft) error {
	m, err := d.write(id, p.c.Sender)
	if err != nil {
		return err
	}
	return p.c.Transport.Send(ctx, m)
}

// clip returns s as one line of limited length.
func clip(s string) string {
	const maxBytes = 400
	s = oneLine(s)
	if len(s) > maxBytes {
		s = strings.ToValidUTF8(s[:maxBytes], "") + "…"
	}
	return s
}
