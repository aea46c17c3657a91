package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// Bounds of the streams by which pages hear that there is something new. A browser opens
// six connections to a server over HTTP/1.1, which its pages share.
const (
	maxStreams           = 200 // of this node
	maxStreamsPerSession = 3
	pollEvery            = 2 * time.Second
	beatEvery            = 15 * time.Second // so that proxies do not close what is quiet
	streamLife           = 10 * time.Minute // browsers open another one
)

// Streams are those that are open.
type streams struct {
	mu   sync.Mutex
	all  int
	by   map[string]int // by session
	stop chan struct{}  // closed when the server ends
	once sync.Once
}

// enter counts a stream of a session; leave must be called if ok.
func (s *streams) enter(session string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxStreams || s.by[session] >= maxStreamsPerSession {
		return nil, false
	}
	s.all++
	s.by[session]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.by[session]--; s.by[session] == 0 {
			delete(s.by, session)
		}
	}, true
}

// Shutdown ends all streams. Pages ask again, and find another node.
func (a *API) Shutdown() { a.site.streams.once.Do(func() { close(a.site.streams.stop) }) }

// follow tells a page, as server-sent events, once what is newest is not what the page
// shows: "new". It ends with the operator's session and right, which it does not keep
// alive: "end".
func (a *site) follow(v *visit, newest func(ctx context.Context) (string, error)) error {
	leave, ok := a.streams.enter(v.session.ID)
	if !ok {
		return &problem.Error{Kind: problem.RateLimited, Code: "too_many_streams",
			Message: "there are too many pages that follow", RetryAfter: time.Minute}
	}
	defer leave()
	ctx, last := v.r.Context(), v.r.URL.Query().Get("last")
	web.NoStore(v.w)
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would keep it back
	h.Set("X-Content-Type-Options", "nosniff")
	say := func(what string) bool {
		_, err := fmt.Fprint(v.w, what)
		return err == nil && http.NewResponseController(v.w).Flush() == nil
	}
	if !say("retry: 10000\n\n") {
		return nil
	}
	look, over, beat := time.NewTicker(pollEvery), time.NewTimer(streamLife), time.Now()
	defer look.Stop()
	defer over.Stop()
	for {
		now, err := newest(ctx)
		switch {
		case err != nil:
			return nil // it asks again
		case now != last:
			say("event: new\ndata: 1\n\n")
			return nil
		case time.Since(beat) >= beatEvery:
			if beat = time.Now(); !say(": still here\n\n") {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.streams.stop:
			return nil
		case <-over.C:
			return nil
		case <-look.C:
		}
		if !a.isStillAllowed(v) {
			say("event: end\ndata: 1\n\n")
			return nil
		}
	}
}

// isStillAllowed reports whether the session of a visit is good and has its right, and does not
// count as a use of it.
func (a *site) isStillAllowed(v *visit) bool {
	s, o, err := a.Operators.Peek(v.r.Context(), v.cookie)
	return err == nil && s.Proven && o.Check(v.route.may, v.project.ID) == nil
}

// followRecordings serves GET /dashboard/projects/{project}/recordings/live.
func (a *recordingPages) followRecordings(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	_, ask, err := v.recordingFilter()
	if err != nil {
		return err
	}
	return a.follow(v, func(ctx context.Context) (string, error) {
		found, err := a.searchRecordings(ctx, ask, page.Query{Size: 1})
		if err != nil || len(found.Items) == 0 {
			return "", err
		}
		return found.Items[0].Sid, nil
	})
}

// followAudit serves GET …/audit/live.
func (a *auditPages) followAudit(v *visit) error {
	_, ask, wrong, err := a.auditQuery(v)
	if err != nil || wrong != nil {
		return problem.BadParam("after", "from and until are days")
	}
	return a.follow(v, func(context.Context) (string, error) {
		found, err := a.trail.audit(v, ask, page.Query{Size: 1})
		if err != nil || len(found.Items) == 0 { // none, or none among the newest
			return v.r.URL.Query().Get("last"), err
		}
		return found.Items[0].ID, nil
	})
}

// liveURL returns where a list is followed from the newest that its page shows.
func liveURL[T any](v *visit, shown []T, id func(T) string) string {
	if len(shown) == 0 {
		return v.live("")
	}
	return v.live(id(shown[0]))
}

// live returns where the first page of a list follows what it shows; "" on the others.
func (v *visit) live(newest string) string {
	q := v.r.URL.Query()
	if q.Has("from") {
		return ""
	}
	q.Del("done")
	q.Set("last", newest)
	return v.r.URL.Path + "/live?" + q.Encode()
}
