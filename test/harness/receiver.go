package harness

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
)

// AllowLocal is an environment variable that permits a server to send webhooks to localhost.
const AllowLocal = "SELVAGE_EGRESS__ALLOW=localhost"

// A Receiver is a webhook endpoint that keeps the events it receives.
type Receiver struct {
	URL string

	mu       sync.Mutex
	answer   int
	received []Told
}

// Told is a request that a receiver received.
type Told struct {
	ID, Event string
	Data      struct {
		ID   string
		Type string
	}
	Body   []byte      `json:"-"`
	Header http.Header `json:"-"`
	Target string      `json:"-"` // path and query of the request
}

// NewReceiver starts a receiver that accepts all requests.
func NewReceiver(t T) *Receiver {
	t.Helper()
	r := &Receiver{answer: http.StatusNoContent}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)

	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatalf("listening: %v", err)
	}
	r.URL = "http://localhost:" + port + "/hook"
	return r
}

func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	received := Told{Body: body, Header: req.Header, Target: req.RequestURI}
	if err == nil {
		err = json.Unmarshal(body, &received)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		received.Event = err.Error() // no test expects this event
	}
	r.received = append(r.received, received)
	w.WriteHeader(r.answer)
}

// Answer sets the status of all later responses.
func (r *Receiver) Answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = status
}

// Told returns the requests received so far, in order.
func (r *Receiver) Told() []Told {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.received)
}

// NewWebhook creates a webhook for the given events, or for all events if none are given, and
// returns the webhook's path. The server must allow localhost; see [AllowLocal].
func (p *Project) NewWebhook(t T, url string, events ...string) string {
	t.Helper()
	in := map[string]any{"url": url, "events": events}
	made := p.Post(t, "/api/fabric/webhooks", Basic(p.ID, p.NewKey(t, "Management")), JSON(in)).Want(t, 201).Object(t)
	return "/api/fabric/webhooks/" + member(t, made, "id")
}
