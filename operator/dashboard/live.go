package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// These are the limits of the event streams that notify pages of new rows. The limit per session
// leaves connections for other requests, since browsers open only six HTTP/1.1 connections to a
// server.
const (
	maxStreams           = 200 // open streams on this node
	maxStreamsPerSession = 3
	pollEvery            = 2 * time.Second
	keepAliveEvery       = 15 * time.Second // how often data is sent, since proxies close silent connections
	streamLifetime       = 10 * time.Minute // how long a stream lasts until the browser reconnects
)

// streams counts the open event streams.
type streams struct {
	mu        sync.Mutex
	total     int
	bySession map[string]int
	stop      chan struct{} // closed when the server shuts down
	once      sync.Once
}

// enter counts a new stream of a session. If a limit is reached, ok is false. Otherwise the caller
// must call leave when the stream ends.
func (s *streams) enter(session string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= maxStreams || s.bySession[session] >= maxStreamsPerSession {
		return nil, false
	}

	s.total++
	s.bySession[session]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.total--
		if s.bySession[session]--; s.bySession[session] == 0 {
			delete(s.bySession, session)
		}
	}, true
}

// Shutdown ends all streams. The browsers then connect to another node.
func (a *API) Shutdown() { a.site.streams.once.Do(func() { close(a.site.streams.stop) }) }

// follow polls for the newest row of a list. When it differs from the newest row that the page
// shows, follow sends the server-sent event "new". When the operator's session or permission ends,
// follow sends "end". A stream does not extend the session.
func (a *site) follow(v *visit, newest func(ctx context.Context) (string, error)) error {
	leave, ok := a.streams.enter(v.session.ID)
	if !ok {
		return &problem.Error{Kind: problem.RateLimited, Code: "too_many_streams",
			Message: "too many pages follow changes at the moment", RetryAfter: time.Minute}
	}
	defer leave()
	send := openStream(v)
	if !send("retry: 10000\n\n") {
		return nil
	}

	last := v.r.URL.Query().Get("last")
	poll, timeout, sent := time.NewTicker(pollEvery), time.NewTimer(streamLifetime), time.Now()
	defer poll.Stop()
	defer timeout.Stop()

	for {
		now, err := newest(v.r.Context())
		if err != nil {
			return nil // the browser reconnects
		}
		if now != last {
			send("event: new\ndata: 1\n\n")
			return nil
		}
		if time.Since(sent) >= keepAliveEvery {
			sent = time.Now()
			if !send(": still here\n\n") {
				return nil
			}
		}

		select {
		case <-v.r.Context().Done():
			return nil
		case <-a.streams.stop:
			return nil
		case <-timeout.C:
			return nil
		case <-poll.C:
		}
		if !a.isStillAllowed(v) {
			send("event: end\ndata: 1\n\n")
			return nil
		}
	}
}

// isStream reports whether a route is an event stream. Browsers connect to these again by themselves.
func isStream(r route) bool { return strings.HasSuffix(r.pattern, "/live") }

// openStream begins a response of server-sent events. The returned function sends text immediately,
// and reports whether the browser is still connected.
func openStream(v *visit) func(text string) bool {
	web.NoStore(v.w)
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // otherwise nginx buffers the response
	h.Set("X-Content-Type-Options", "nosniff")
	return func(text string) bool {
		_, err := fmt.Fprint(v.w, text)
		return err == nil && http.NewResponseController(v.w).Flush() == nil
	}
}

// isStillAllowed reports whether a visit's session is still valid and its operator still has the
// required permission.
// It does not extend the session.
func (a *site) isStillAllowed(v *visit) bool {
	s, o, err := a.Operators.Peek(v.r.Context(), v.cookie)
	return err == nil && a.isComplete(s, o) && o.Check(v.route.may, v.project.ID) == nil
}

// followRecordings serves GET /dashboard/projects/{project}/recordings/live.
func (a *recordingPages) followRecordings(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	ask, err := a.recordingFilter(v)
	if err != nil {
		return err
	}

	text := v.recordingFinder().Query
	return a.follow(v, func(ctx context.Context) (string, error) {
		found, err := a.findRecordings(ctx, ask, text, page.Query{Size: 1})
		if err != nil || len(found.Items) == 0 {
			return "", err
		}
		return found.Items[0].Sid, nil
	})
}

// followAudit serves GET …/audit/live.
func (a *auditPages) followAudit(v *visit) error {
	_, ask, err := a.auditQuery(v)
	if err != nil {
		return err
	}

	return a.follow(v, func(context.Context) (string, error) {
		found, err := a.trail.audit(v, ask.Filter, page.Query{Size: 1})
		if err != nil || len(found.Items) == 0 { // no event matches, or no match is among the newest events
			return v.r.URL.Query().Get("last"), err
		}
		return found.Items[0].ID, nil
	})
}

// liveURL returns the URL of the event stream for rows newer than those in shown.
func liveURL[T any](v *visit, shown []T, id func(T) string) string {
	if len(shown) == 0 {
		return v.live("")
	}
	return v.live(id(shown[0]))
}

// live returns the URL of the event stream for the first page of a list, or "" for other pages.
func (v *visit) live(newest string) string {
	q := v.r.URL.Query()
	if q.Has("from") {
		return ""
	}
	q.Del("done")
	q.Set("last", newest)
	return v.r.URL.Path + "/live?" + q.Encode()
}
