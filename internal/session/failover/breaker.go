package failover

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// The parameters of the breaker; see the package comment.
const (
	tolerated  = 3 // the breaker opens after this many failures within window
	window     = time.Second
	fewBad     = 2 // the breaker also opens after this many consecutive failed probes
	probeAway  = 500 * time.Millisecond
	probeThere = 5 * time.Second
	fewGood    = 2           // the breaker closes after this many consecutive successful probes
	manyGood   = 16          // the largest number of successful probes that closing may require
	flapping   = time.Minute // if the breaker opens again within this time, more probes must succeed to close it
)

// A breaker records the health of the primary.
type breaker struct {
	failures     int // number of failures in the window that started at began
	bad          int // number of consecutive failed probes while the primary is in use
	began        time.Time
	opened       time.Time // when the breaker last opened
	closed       time.Time
	cause        string // why the breaker opened
	good, needed int    // consecutive successful probes since the breaker opened, and how many of them close it
}

// A State describes whether the primary is unavailable, and why.
type State struct {
	Away  bool
	Since time.Time // when the primary became unavailable; zero if it is available
	Cause string    // why the primary is unavailable, without secrets
	Until time.Time // when the fallback stops lingering; zero if it does not linger
}

// State returns the current state.
func (s *Store) State() State {
	var now State
	if s.lingers() {
		now.Until = time.UnixMicro(s.until.Load())
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if _, up := s.up(); !up {
		now.Away, now.Since, now.Cause = true, s.breaker.opened, s.breaker.cause
	}
	return now
}

// up reports whether the primary is in use, and returns the current era.
func (s *Store) up() (era uint64, up bool) {
	era = s.era.Load()
	return era, era%2 == 0
}

// recordResult records that an operation on the primary returned err, and reports whether the
// primary answered. A failure counts against the primary, unless it comes from an earlier era or
// the caller's context is done. If the caller's context is done, recordResult returns true, so that
// the caller returns the error.
func (s *Store) recordResult(ctx context.Context, era uint64, err error) bool {
	result := resultOf(err)
	s.counts[primary][result].Add(1)
	if result != failed {
		return true
	}

	if done := ctx.Err(); done != nil && errors.Is(err, done) {
		return true // the caller's context is done, so the primary is not to blame
	}
	s.recordFailure(era, err)
	return false
}

func (s *Store) recordFailure(era uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.era.Load() != era {
		return
	}

	b, now := &s.breaker, time.Now()
	if now.Sub(b.began) > window {
		b.failures, b.began = 0, now
	}

	b.failures++
	if b.failures >= tolerated {
		s.open(err)
	}
	s.probe()
}

// open opens the breaker, so that the primary receives only probes. The caller must hold the lock.
func (s *Store) open(err error) {
	b := &s.breaker
	b.opened, b.cause = time.Now(), err.Error()
	b.failures, b.bad, b.good = 0, 0, 0
	if b.needed == 0 || b.opened.Sub(b.closed) > flapping {
		b.needed = fewGood
	} else {
		b.needed = min(2*b.needed, manyGood)
	}

	s.era.Add(1)
	s.log.Warn("the session store is unavailable; using the fallback", "cause", b.cause)
}

// probed records the result of a probe. era is the era in which the probe began.
func (s *Store) probed(era uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	b, up := &s.breaker, era%2 == 0
	switch {
	case s.era.Load() != era:
	case up && err != nil:
		b.bad++
		if b.bad < fewBad {
			s.probe()
			return
		}
		s.open(err)
	case up:
		b.bad = 0
	case err != nil:
		b.good = 0
	default:
		b.good++
		if b.good < b.needed {
			return
		}
		b.closed = time.Now()
		s.era.Add(1)
		s.log.Info("the session store is available again",
			"away", b.closed.Sub(b.opened).Round(time.Millisecond).String())
	}
}

// probe triggers a probe of the primary.
func (s *Store) probe() {
	select {
	case s.kick <- struct{}{}:
	default: // a probe is already due
	}
}

// watchPrimary probes the primary until the Store is closed.
func (s *Store) watchPrimary() {
	for {
		pause := probeThere
		if _, up := s.up(); !up {
			pause = probeAway
		}

		wait := time.NewTimer(pause)
		select {
		case <-s.done.Done():
			wait.Stop()
			return
		case <-s.kick:
		case <-wait.C:
		}
		wait.Stop()

		era, _ := s.up()
		if err := s.primary.Probe(s.done); s.done.Err() == nil {
			s.probed(era, err)
		}
	}
}

// isAbsent reports whether an error means that the entry does not exist.
func isAbsent(err error) bool { return errors.Is(err, problem.NotFound) }
