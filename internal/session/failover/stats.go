package failover

import (
	"errors"

	"github.com/selvage/selvage/internal/problem"
)

// The backends of a Store, as indexes of its counts.
const (
	primary = iota
	fallback
	backends // the number of backends
)

// The results of an operation, as indexes of the counts.
const (
	ok = iota
	absent
	conflict
	failed
	results // the number of results
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
	counts := make([]Count, 0, backends*results)
	for backend := range s.counts {
		for result := range s.counts[backend] {
			counts = append(counts, Count{
				Backend: backendNames[backend],
				Result:  resultNames[result],
				N:       s.counts[backend][result].Load(),
			})
		}
	}
	return counts
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

// recordFallback counts an operation of the fallback that returned err, and returns err.
func (s *Store) recordFallback(err error) error {
	s.counts[fallback][resultOf(err)].Add(1)
	return err
}
