package deliver

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// A visit is this node's turn with a receiver.
type visit struct {
	d        *Deliverer
	receiver Receiver
	write    Write
	began    time.Time

	mu       sync.Mutex
	failures int
	rests    time.Time
	lost     bool // the hold was lost, so another node may hold the receiver
}

// maxBatches limits the number of batches in a turn, so that other receivers get a turn. If the receiver
// is slow, the turn ends earlier, after turnFor.
const maxBatches = 8

// serve holds a receiver and sends its due jobs.
func (d *Deliverer) serve(ctx context.Context, id string) {
	r, ok := d.hold(ctx, id)
	if !ok {
		return
	}

	v := &visit{d: d, receiver: r, began: time.Now(), failures: r.Failures}
	kept, stop := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() { v.keep(kept) })
	defer func() {
		stop()
		keeping.Wait()
		v.release(context.WithoutCancel(ctx))
	}()

	write, err := d.c.Writer(ctx, r)
	if err != nil {
		d.c.Log.Error("reading the signing keys", "project", r.ProjectID, "error", err)
		v.rests = d.now().Add(rest(restAfter))
		return
	}
	v.write = write

	for range maxBatches {
		jobs, err := d.c.Queue.DueJobs(ctx, id, d.now(), batch)
		if err != nil && ctx.Err() == nil {
			d.c.Log.Error("reading deliveries", d.c.What, id, "error", err)
		}
		if len(jobs) == 0 || !v.send(ctx, jobs) {
			return
		}
	}
}

// keep renews the hold periodically until ctx is done or the hold is lost.
func (v *visit) keep(ctx context.Context) {
	tick := time.NewTicker(holdFor / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, ok := v.d.hold(ctx, v.receiver.ID); !ok && ctx.Err() == nil {
			v.mu.Lock()
			v.lost = true
			v.mu.Unlock()
			return
		}
	}
}

func (v *visit) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, holdFor)
	defer cancel()
	d := v.d
	err := d.c.Queue.ReleaseReceiver(ctx, v.receiver.ID, d.holder, d.now(), v.failures, v.rests)
	if err != nil {
		d.c.Log.Warn("releasing a receiver; the hold expires in a few seconds",
			d.c.What, v.receiver.ID, "error", err)
	}
}

// mustEnd reports whether the turn must end: because it has lasted long enough, the receiver is resting,
// the hold was lost, or the node is stopping.
func (v *visit) mustEnd(ctx context.Context) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lost || !v.rests.IsZero() || time.Since(v.began) >= turnFor || v.d.stopping(ctx)
}

var seed = maphash.MakeSeed()

// send sends jobs concurrently, except that jobs with the same subject are sent one after the
// other. It reports whether the turn may continue.
func (v *visit) send(ctx context.Context, jobs []Job) bool {
	var byLane [lanes][]Job
	for _, j := range jobs {
		i := maphash.String(seed, j.Subject) % lanes
		byLane[i] = append(byLane[i], j)
	}

	var running sync.WaitGroup
	for _, lane := range byLane {
		if len(lane) == 0 {
			continue
		}
		running.Go(func() {
			for _, j := range lane {
				if v.mustEnd(ctx) || !v.attempt(ctx, j) {
					return
				}
			}
		})
	}
	running.Wait()
	return !v.mustEnd(ctx)
}

// attempt sends a body once and stores the outcome. It reports whether the outcome was stored.
func (v *visit) attempt(ctx context.Context, j Job) bool {
	a := v.post(ctx, j)
	if a.err != "" && ctx.Err() != nil {
		return false // this node aborted the attempt
	}

	now := v.d.now()
	v.countFailures(a, now)
	r := v.settled(j, a, now)
	// Store the outcome even if the node is stopping.
	if err := v.d.c.Queue.Settle(context.WithoutCancel(ctx), r); err != nil {
		v.d.c.Log.Error("storing the result of a delivery; it will be sent again",
			v.d.c.What, v.receiver.ID, "delivery", j.ID, "error", err)
		return false
	}

	v.report(r)
	return true
}

// report passes the outcome to Observe, and logs failures.
func (v *visit) report(r Result) {
	switch r.State {
	case Delivered:
		v.d.c.Observe("delivered")
	case Dead:
		v.d.c.Observe("dead")
		v.d.c.Log.Warn("gave up on a delivery", v.d.c.What, r.ReceiverID, "delivery", r.JobID,
			"attempts", r.Attempts, "status", r.Status, "error", r.Error)
	default:
		v.d.c.Observe("failed")
		v.d.c.Log.Debug("delivery failed", v.d.c.What, r.ReceiverID, "delivery", r.JobID,
			"attempts", r.Attempts, "status", r.Status, "error", r.Error)
	}
}

// countFailures counts consecutive failures. It makes the receiver rest after several failures, or if
// the receiver asks for a later attempt. Failures of attempts that were already running when the rest
// began do not count.
func (v *visit) countFailures(a answer, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !a.isDown() {
		v.failures = 0
		return
	}
	if !v.rests.IsZero() {
		return
	}
	v.failures++
	if pause := max(rest(v.failures), min(a.retryAfter, longestRest)); pause > 0 {
		v.rests = now.Add(pause)
	}
}
