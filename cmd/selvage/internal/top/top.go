// Package top repeatedly reads the metrics of running nodes, and computes what the nodes did between two
// readings: requests, logins, calls, queues and errors. The command `selvage top` prints the result.
package top

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// A Picture describes what the nodes did between two readings.
type Picture struct {
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"` // seconds between the readings
	Nodes   []Node    `json:"nodes"`
	All     Values    `json:"all"` // values of all nodes that responded
}

// A Node is one node in a Picture.
type Node struct {
	URL      string            `json:"url"`
	State    string            `json:"state"`
	Version  string            `json:"version,omitempty"`
	Problems map[string]string `json:"problems,omitempty"` // failed checks of /readyz
	Error    string            `json:"error,omitempty"`    // why the node could not be read
	Values   Values            `json:"values"`
}

// Unreachable is the state of a node that could not be read. The other states come from /readyz:
// ready, not ready and stopping.
const Unreachable = "unreachable"

// Values maps the keys of Rows to values. Values that a node does not have are missing.
type Values map[string]float64

// A Watcher reads nodes repeatedly.
type Watcher struct {
	bases  []string // URLs of the ops listeners
	client *http.Client
	last   []reading
}

// patience is how long a node may take to respond.
const patience = 5 * time.Second

// NewWatcher returns a Watcher for the nodes whose ops listeners have these URLs, such as
// http://127.0.0.1:9090.
func NewWatcher(bases []string) *Watcher {
	return &Watcher{
		bases: bases,
		client: &http.Client{
			Timeout:       patience,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Look reads all nodes and returns what they did since the last call. The Picture of the first call has no
// rates, because there is no earlier reading.
func (w *Watcher) Look(ctx context.Context) Picture {
	now := make([]reading, len(w.bases))
	var reads sync.WaitGroup
	for i, base := range w.bases {
		reads.Go(func() { now[i] = w.read(ctx, base) })
	}
	reads.Wait()

	before := w.last
	if before == nil {
		before = make([]reading, len(now))
	}
	w.last = now
	return compare(w.bases, before, now)
}

// compare returns what nodes did between two readings.
func compare(bases []string, before, now []reading) Picture {
	p := Picture{Time: time.Now()}
	var spans []span
	for i, r := range now {
		n := Node{
			URL:      bases[i],
			State:    r.state,
			Version:  r.version,
			Problems: r.problems,
			Values:   Values{},
		}
		if r.err != nil {
			n.Error = r.err.Error()
		} else {
			s := between(before[i], r)
			n.Values = s.values()
			spans = append(spans, s)
			p.Time = r.at
			p.Seconds = max(p.Seconds, s.seconds)
		}
		p.Nodes = append(p.Nodes, n)
	}
	p.All = summarize(spans)
	return p
}
