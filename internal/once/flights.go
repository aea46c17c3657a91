package once

import (
	"bytes"
	"container/list"
	"net/http"
	"sync"
	"time"
)

const (
	// keptFor is how long a response is kept in memory for requests that send the form again. It is
	// short, because the response may show a secret that is stored nowhere else.
	keptFor = 3 * time.Second

	// maxKept limits the memory in bytes for the responses of a Guard. If they need more, the oldest
	// responses are dropped. maxKept is enough for several thousand redirects.
	maxKept = 16 << 20

	// flightSize is more than the number of bytes that a response needs in memory without its body.
	flightSize = 2 << 10
)

// flights are the forms that this node is handling, or has just handled, by the digests of their ids.
type flights struct {
	mu   sync.Mutex
	all  map[string]*flight
	kept list.List // the flights whose responses are kept, the oldest first
	size int       // bytes of these responses
}

// A flight is a form that is being handled, or has just been handled. Requests that send the same form
// again wait for its response.
type flight struct {
	id       string
	done     chan struct{}
	response recorder // complete once done is closed

	// These are set once the response is kept.
	until time.Time     // when the response is dropped
	place *list.Element // in flights.kept
	timer *time.Timer
}

func (f *flight) size() int { return flightSize + f.response.body.Cap() }

// join returns the flight of the form with this id. If isFirst is true, the caller must handle the
// form, and then call leave.
func (a *flights) join(id string, w http.ResponseWriter, now time.Time) (f *flight, isFirst bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f = a.current(id, now); f != nil {
		return f, false
	}
	if expired := a.all[id]; expired != nil {
		a.drop(expired)
	}
	f = &flight{id: id, done: make(chan struct{}), response: recorder{ResponseWriter: w}}
	a.all[id] = f
	return f, true
}

// find returns the flight of the form with this id, or nil.
func (a *flights) find(id string, now time.Time) *flight {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current(id, now)
}

// current is find for callers that hold the lock.
func (a *flights) current(id string, now time.Time) *flight {
	if f := a.all[id]; f != nil && (f.until.IsZero() || now.Before(f.until)) {
		return f
	}
	return nil
}

// leave ends the handling of a form. It keeps the response of a form that succeeded.
func (a *flights) leave(f *flight, now func() time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer close(f.done)
	f.response.ResponseWriter = nil // it would keep the request in memory
	if !f.response.succeeded() {
		delete(a.all, f.id)
		return
	}
	f.until, f.place = now().Add(keptFor), a.kept.PushBack(f)
	a.size += f.size()
	a.dropLater(f, now)
	for a.size > maxKept {
		a.drop(a.kept.Front().Value.(*flight))
	}
}

// dropLater drops the response of a flight once the clock that now reads has reached f.until. In
// tests, this clock may be slower than the timer.
func (a *flights) dropLater(f *flight, now func() time.Time) {
	f.timer = time.AfterFunc(keptFor, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		switch {
		case a.all[f.id] != f: // dropped
		case now().Before(f.until):
			a.dropLater(f, now)
		default:
			a.drop(f)
		}
	})
}

// drop drops the response of a flight that is kept. The caller holds the lock.
func (a *flights) drop(f *flight) {
	f.timer.Stop() // it would keep the response in memory
	delete(a.all, f.id)
	a.kept.Remove(f.place)
	a.size -= f.size()
}

// replay waits until the form of the flight has been handled, and sends its response to w. ok is
// false if the form failed, so that r may be handled.
func (f *flight) replay(w http.ResponseWriter, r *http.Request) (ok bool, err error) {
	select {
	case <-f.done:
	case <-r.Context().Done():
		return false, r.Context().Err()
	}
	if !f.response.succeeded() {
		return false, nil
	}
	drop(r)
	f.response.replay(w)
	return true, nil
}

// A recorder sends a response and also keeps it.
type recorder struct {
	http.ResponseWriter
	status int
	header http.Header // set when the response is complete
	body   bytes.Buffer
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write keeps p even if the browser has disconnected.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	_, _ = r.ResponseWriter.Write(p) // a request that sends the form again may still get p
	return r.body.Write(p)
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// succeeded reports whether the handler has responded without an error.
func (r *recorder) succeeded() bool { return r.status != 0 && r.status < http.StatusBadRequest }

// replay sends the response again, to another request. It does not replace headers that w already has,
// because they belong to this request. Of cookies, the browser needs both.
func (r *recorder) replay(w http.ResponseWriter) {
	for name, values := range r.header {
		switch {
		case name == "Set-Cookie":
			w.Header()[name] = append(w.Header()[name], values...)
		case w.Header()[name] == nil:
			w.Header()[name] = values
		}
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes()) // the browser may have disconnected
}
