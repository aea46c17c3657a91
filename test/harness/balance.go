package harness

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// A balancer in front of [Nodes] chooses the node for each request. It works like nginx or HAProxy
// with health checks. If it cannot connect to a node, it sends the request to another one. Nodes
// that are not ready are tried last.
type balancer struct {
	n      *Nodes
	turn   atomic.Int64
	pinned atomic.Int64 // number of the only node to use, counted from 1; 0 means all nodes

	mu    sync.Mutex
	ready []bool // by node
}

// probeEvery is the interval between two probes of a node.
const probeEvery = 100 * time.Millisecond

// Balance makes the HTTP address skip nodes that are not ready, until the test ends. Without
// Balance, all nodes get requests in turn, even nodes that are not running.
func (n *Nodes) Balance(t T) {
	t.Helper()
	b := &balancer{n: n, ready: make([]bool, len(n.Each))}
	ctx, cancel := context.WithCancel(context.Background())
	var probes sync.WaitGroup
	for i := range n.Each {
		probes.Go(func() { b.probe(ctx, i) })
	}
	t.Cleanup(func() {
		cancel()
		probes.Wait()
	})
	n.balancer.Store(b)
}

// Pin makes the HTTP address lead only to node i. If i is -1, it leads to all nodes again. Call
// [Nodes.Balance] first.
func (n *Nodes) Pin(i int) { n.balancer.Load().pinned.Store(int64(i + 1)) }

// probe requests /readyz of a node until ctx is done.
func (b *balancer) probe(ctx context.Context, i int) {
	client := &http.Client{Timeout: time.Second}
	ops := b.n.Each[i].Ops // does not change when the node restarts
	next := time.NewTicker(probeEvery)
	defer next.Stop()

	for {
		resp, err := client.Get(ops + "/readyz")
		if err == nil {
			_ = resp.Body.Close()
		}
		b.mu.Lock()
		b.ready[i] = err == nil && resp.StatusCode == http.StatusOK
		b.mu.Unlock()

		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
	}
}

// order returns the nodes to try for a request: first the nodes that are ready, in turn, then the
// others.
func (b *balancer) order() (nodes []int) {
	if i := b.pinned.Load(); i > 0 {
		return []int{int(i - 1)}
	}
	first := int(b.turn.Add(1))
	b.mu.Lock()
	defer b.mu.Unlock()

	var others []int
	for k := range b.ready {
		if i := (first + k) % len(b.ready); b.ready[i] {
			nodes = append(nodes, i)
		} else {
			others = append(others, i)
		}
	}
	return append(nodes, others...)
}

// handler forwards requests.
func (b *balancer) handler(transport http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
		Transport: balancing{b, transport},
		// Close the connection, so that the client learns that its response is lost.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

// A balancing transport sends each request to a node.
type balancing struct {
	b    *balancer
	next http.RoundTripper
}

// RoundTrip sends a request to the first node that accepts a connection.
func (t balancing) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	var err error
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}

	for _, i := range t.b.order() {
		to, parsed := url.Parse(t.b.n.Each[i].HTTP)
		if parsed != nil {
			return nil, parsed
		}
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host = to.Scheme, to.Host
		if out.Body = nil; len(body) > 0 {
			out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
			out.Body, _ = out.GetBody() // never fails
		}

		var resp *http.Response
		resp, err = t.next.RoundTrip(out)
		var dial *net.OpError
		if err == nil || !errors.As(err, &dial) || dial.Op != "dial" {
			return resp, err
		}
	}
	return nil, err
}
