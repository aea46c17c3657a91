package harness

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync/atomic"
)

// Nodes are servers that share everything but their data directories, behind one address.
// Each request to the embedded Server goes to one of the nodes, in turn unless a route
// chooses the node. Commands run with the data of the first node. The embedded Server cannot
// be stopped, but the nodes can.
type Nodes struct {
	*Server
	Each []*Server
}

// StartNodes starts a node for each config, with databases of the backend that
// servers.Backend chooses. If route is not nil, it returns the index of the node that serves
// a path.
func StartNodes(t T, route func(path string) int, configs ...Config) *Nodes {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening: %v", err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatalf("listening: %v", err)
	}
	base := "http://localhost:" + port

	n := &Nodes{}
	front := &http.Server{Handler: n.front(route)}
	t.Cleanup(func() { _ = front.Close() })

	for i, c := range configs {
		if i > 0 {
			c.Beside = n.Each[0]
			c.Env = append(c.Env, "SELVAGE_MASTER_KEY_FILE="+filepath.Join(c.Beside.Data, "master.key"))
			c.Args = append(c.Args, "--media", "dir:"+filepath.Join(c.Beside.Data, "media"))
		}
		c.Args = append(c.Args, "--public-url", base, "--auth-url", base, "--fabric-host", "puc.localhost:8443")
		n.Each = append(n.Each, StartConfig(t, c))
	}

	first := n.Each[0]
	n.Server = &Server{Run: first.Run, Data: first.Data, Backends: first.Backends, config: first.config,
		binary: first.binary}
	n.HTTP = base

	go func() { _ = front.Serve(l) }() // until it is closed
	return n
}

// front returns a handler that forwards requests to the nodes, as a load balancer does.
func (n *Nodes) front(route func(path string) int) http.Handler {
	var turn atomic.Int64
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			var i int
			if route != nil {
				i = route(r.In.URL.Path)
			} else {
				i = int(turn.Add(1)) % len(n.Each)
			}

			to, err := url.Parse(n.Each[i].HTTP)
			if err != nil {
				panic(err) // the server's own URL
			}
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: crowd, DisableCompression: true},
	}
}
