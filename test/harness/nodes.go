package harness

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Nodes are servers that share everything except their data directories, behind one address. Each
// request to the embedded Server goes to one of the nodes, in turn unless a route chooses the node.
// Commands run with the data of the first node. Each node can be stopped, but the embedded Server
// cannot.
//
// The HTTPS address is also the fabric's address. It leads to the node that Prefer chose or, if
// that node is not running, to another one.
type Nodes struct {
	*Server
	Each []*Server

	preferred atomic.Int64
	balancer  atomic.Pointer[balancer] // nil until Balance is called
}

// Prefer makes later HTTPS connections go to node i. Before the first call, they go to the first
// node.
func (n *Nodes) Prefer(i int) { n.preferred.Store(int64(i)) }

// StartNodes starts a node for each config, with databases of the backend that servers.Backend
// chooses. If route is not nil, route returns the index of the node that serves a path.
func StartNodes(t T, route func(path string) int, configs ...Config) *Nodes {
	t.Helper()
	plain, port := listen(t)
	secure, securePort := listen(t)
	base := "http://localhost:" + port

	n := &Nodes{}
	front := &http.Server{Handler: n.front(route)}
	t.Cleanup(func() { _ = front.Close() })
	t.Cleanup(func() { _ = secure.Close() })

	for i, c := range configs {
		if i > 0 {
			c.Beside = n.Each[0]
			c.Env = append(c.Env, "SELVAGE_MASTER_KEY_FILE="+filepath.Join(c.Beside.Data, "master.key"))
			if !slices.ContainsFunc(c.Env, func(e string) bool { return strings.HasPrefix(e, "SELVAGE_MEDIA=") }) {
				c.Args = append(c.Args, "--media", "dir:"+filepath.Join(c.Beside.Data, "media"))
			}
			if c.Data == "" {
				c.Data = dataWithAuthority(t, c.Beside)
			}
		}
		c.Args = append(c.Args, "--public-url", base, "--auth-url", base, "--fabric-host", "puc.localhost:"+securePort)
		n.Each = append(n.Each, StartConfig(t, c))
	}

	first := n.Each[0]
	n.Server = &Server{
		Run:      first.Run,
		Data:     first.Data,
		Backends: first.Backends,
		config:   first.config,
		binary:   first.binary,
	}
	n.HTTP, n.HTTPS = base, "https://localhost:"+securePort

	go func() { _ = front.Serve(plain) }() // returns when the listener is closed
	go n.forwardTLS(secure)
	return n
}

// listen listens on a free port of the loopback address.
func listen(t T) (l net.Listener, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening: %v", err)
	}
	return l, strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// dataWithAuthority returns a data directory with a copy of another server's local certificate
// authority, if that server has one. Clients that trust one server then trust both.
func dataWithAuthority(t T, of *Server) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"ca.pem", "ca-key.pem"} {
		content, err := os.ReadFile(filepath.Join(of.Data, name))
		if errors.Is(err, fs.ErrNotExist) {
			return dir // the other server uses no local authority
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
		}
		if err != nil {
			t.Fatalf("copying the certificate authority: %v", err)
		}
	}
	return dir
}

// forwardTLS forwards connections to nodes without decrypting them, until l is closed.
func (n *Nodes) forwardTLS(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}

		go func() {
			defer client.Close()
			node := n.dial()
			if node == nil {
				return
			}
			defer node.Close()
			go func() {
				_, _ = io.Copy(node, client) // returns when either side closes
				_ = node.Close()
			}()
			_, _ = io.Copy(client, node)
		}()
	}
}

// dial connects to the preferred node. If that node is not running, dial connects to the next one
// that is.
func (n *Nodes) dial() net.Conn {
	for i := range n.Each {
		at := n.Each[(int(n.preferred.Load())+i)%len(n.Each)]
		if conn, err := net.Dial("tcp", hostOf(at.HTTPS)); err == nil {
			return conn
		}
	}
	return nil
}

// front returns a handler that forwards requests to the nodes like a load balancer.
func (n *Nodes) front(route func(path string) int) http.Handler {
	var turn atomic.Int64
	transport := &http.Transport{MaxIdleConnsPerHost: crowd, DisableCompression: true}
	inTurn := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			var i int
			if route != nil {
				i = route(r.In.URL.Path)
			} else {
				i = int(turn.Add(1)) % len(n.Each)
			}

			to, err := url.Parse(n.Each[i].HTTP)
			if err != nil {
				panic(err) // the URL was formed by StartConfig
			}
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		Transport: transport,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b := n.balancer.Load(); b != nil {
			b.handler(transport).ServeHTTP(w, r)
			return
		}
		inTurn.ServeHTTP(w, r)
	})
}
