// Package aside does what no request waits for, such as noting that a key was used: in
// order, one thing at a time, however many requests ask for it.
package aside

import (
	"context"
	"sync"
)

// A Queue does what it is given beside whoever gives it. Its zero value is ready; its
// methods may be called at once from any number of goroutines.
type Queue struct {
	mu    sync.Mutex
	known map[string]bool // waits, or is being done
	waits []job
	over  chan struct{} // closed once nothing waits; nil while there is nothing to do
}

type job struct {
	key string
	do  func()
}

// Do has something done. What has the key of something that is not done yet is the same,
// and is left out.
func (q *Queue) Do(key string, do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known[key] {
		return
	}
	if q.known == nil {
		q.known = make(map[string]bool)
	}
	q.known[key] = true
	q.waits = append(q.waits, job{key, do})
	if q.over == nil {
		q.over = make(chan struct{})
		go q.work()
	}
}

// work does what waits, and ends where nothing does any more.
func (q *Queue) work() {
	for j, ok := q.next(""); ok; j, ok = q.next(j.key) {
		j.do()
	}
}

// next returns what is to be done after what has the key of done.
func (q *Queue) next(done string) (job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.known, done)
	if len(q.waits) == 0 {
		close(q.over)
		q.waits, q.over = nil, nil
		return job{}, false
	}
	j := q.waits[0]
	q.waits = q.waits[1:]
	return j, true
}

// Wait waits until all that was given is done, or the context ends.
func (q *Queue) Wait(ctx context.Context) error {
	q.mu.Lock()
	over := q.over
	q.mu.Unlock()
	if over == nil {
		return nil
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
