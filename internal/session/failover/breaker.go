package failover

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// How the breaker decides; see the package comment.
const (
	window     = time.Second // in which so many failures open it
	tolerated  = 3
	fewBad     = 2 // probes in a row open it, too: one is also too late where the machine has much to do
	probeAway  = 500 * time.Millisecond
	probeThere = 5 * time.Second
	fewGood    = 2 // probes close it
	manyGood   = 16
	flapping   = time.Minute // between closing and opening again
)

// A breaker is what is known of the primary's health.
type breaker struct {
	failures     int // within the window that began
	bad          int // probes in a row, while the primary is asked
	began        time.Time
	opened       time.Time // when it last did
	closed       time.Time
	cause        string // why it opened
	good, needed int    // probes since it opened, and how many close it
}

// State tells whether the primary is away.
type State struct {
	Away  bool
	Since time.Time // since when; zero where it is not
	Cause string    // why, without secrets
	Until time.Time // how long the fallback may hold entries from an outage; zero where it has none
}

// State tells how it is now.
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

// up reports whether the primary is to be asked, and the era in which it is.
func (s *Store) up() (era uint64, up bool) {
	era = s.era.Load()
	return era, era%2 == 0
}

// answered reports whether what the primary gave is an answer. A failure counts
// against it, unless it is of an era that has passed.
func (s *Store) answered(ctx context.Context, era uint64, err error) bool {
	result := resultOf(err)
	s.counts[primary][result].Add(1)
	if result != failed {
		return true
	}
	if left := ctx.Err(); left != nil && errors.Is(err, left) {
		return true // it is the caller who has gone
	}
	s.failed(era, err)
	return false
}

func (s *Store) failed(era uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.era.Load() != era {
		return
	}
	b, now := &s.breaker, time.Now()
	if now.Sub(b.began) > window {
		b.failures, b.began = 0, now
	}
	if b.failures++; b.failures >= tolerated {
		s.open(err)
	}
	s.probe()
}

// open has nothing asked of the primary any more. The lock is held.
func (s *Store) open(err error) {
	b := &s.breaker
	b.opened, b.cause, b.failures, b.bad, b.good = time.Now(), err.Error(), 0, 0, 0
	if b.needed == 0 || b.opened.Sub(b.closed) > flapping {
		b.needed = fewGood
	} else {
		b.needed = min(2*b.needed, manyGood)
	}
	s.era.Add(1)
	s.log.Warn("the session store is away, and its fallback is used", "cause", b.cause)
}

// probed takes the result of a probe.
func (s *Store) probed(era uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, up := &s.breaker, era%2 == 0
	switch {
	case s.era.Load() != era:
	case up && err != nil:
		if b.bad++; b.bad < fewBad {
			s.probe()
			return
		}
		s.open(err)
	case up:
		b.bad = 0
	case err != nil:
		b.good = 0
	default:
		if b.good++; b.good < b.needed {
			return
		}
		b.closed = time.Now()
		s.era.Add(1)
		s.log.Info("the session store is back", "away", b.closed.Sub(b.opened).Round(time.Millisecond).String())
	}
}

// probe has the primary probed now.
func (s *Store) probe() {
	select {
	case s.kick <- struct{}{}:
	default: // it is about to be
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

// isAbsent reports whether an error says that there is no such entry.
func isAbsent(err error) bool { return errors.Is(err, problem.NotFound) }
