// Package background runs jobs that no request waits for, such as recording that a key was used. However
// many requests queue jobs, only one job runs at a time, in the order of queueing.
package background

import (
	"context"
	"sync"
)

// A Queue runs jobs in its own goroutine. Its zero value is ready to use, and its
// methods are safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	pending map[string]bool // keys of jobs that are queued or running
	waiting []job
	idle    chan struct{} // closed when the last job has ended; nil while no job is queued or running
}

type job struct {
	key string
	run func()
}

// Do queues a job. If a job with the same key is queued or running, the new job is dropped.
func (q *Queue) Do(key string, run func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pending[key] {
		return
	}

	if q.pending == nil {
		q.pending = make(map[string]bool)
	}
	q.pending[key] = true
	q.waiting = append(q.waiting, job{key, run})
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.work()
	}
}

// work runs jobs until the queue is empty.
func (q *Queue) work() {
	for j, ok := q.next(""); ok; j, ok = q.next(j.key) {
		j.run()
	}
}

// next returns the job to run next. done is the key of the job that has just ended, which may now be
// queued again. If no job is left, the queue becomes idle, and ok is false.
func (q *Queue) next(done string) (j job, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.pending, done)
	if len(q.waiting) == 0 {
		close(q.idle)
		q.waiting, q.idle = nil, nil
		return job{}, false
	}

	j = q.waiting[0]
	q.waiting = q.waiting[1:]
	return j, true
}

// Wait waits until every queued job has ended, or until ctx is done.
func (q *Queue) Wait(ctx context.Context) error {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return nil
	}

	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
