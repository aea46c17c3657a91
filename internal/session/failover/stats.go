package failover

import (
	"errors"

	"github.com/selvage/selvage/internal/problem"
)

const (
	primary = iota
	fallback
	backends
)

const (
	ok = iota
	absent
	conflict
	failed
	results
)

var (
	backendNames = [backends]string{"primary", "fallback"}
	resultNames  = [results]string{"ok", "absent", "conflict", "failed"}
)

// A Count is the number of operations on a backend that had the same result.
type Count struct {
	Backend string // primary or fallback
	Result  string // ok, absent, conflict or failed
	N       uint64
}

// Stats returns the counts since the Store was created.
func (s *Store) Stats() []Count {
	all := make([]Count, 0, backends*results)
	for b := range s.counts {
		for r := range s.counts[b] {
			all = append(all, Count{
				Backend: backendNames[b],
				Result:  resultNames[r],
				N:       s.counts[b][r].Load(),
			})
		}
	}
	return all
}

func resultOf(err error) int {
	switch {
	case err == nil:
		return ok
	case errors.Is(err, problem.NotFound):
		return absent
	case errors.Is(err, problem.Conflict):
		return conflict
	}
	return failed
}

// tally counts an operation of the fallback, and returns err.
func (s *Store) tally(err error) error {
	s.counts[fallback][resultOf(err)].Add(1)
	return err
}
