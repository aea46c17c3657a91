package nodes

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/acme"
	"github.com/selvage/selvage/test/harness"
)

// A front waits for a list of addresses, and then forwards its connections to these addresses in
// turn.
type front struct {
	port int
	to   chan []string // receives the list once
}

func newFront(t *testing.T) front {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	f := front{l.Addr().(*net.TCPAddr).Port, make(chan []string, 1)}
	go f.serve(l)
	return f
}

func (f front) serve(l net.Listener) {
	to := <-f.to
	for i := 0; ; i++ {
		in, err := l.Accept()
		if err != nil {
			return // the test has ended
		}
		go pass(in, to[i%len(to)])
	}
}

func pass(in net.Conn, address string) {
	defer in.Close()
	out, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer out.Close()
	go func() { _, _ = io.Copy(out, in) }()
	_, _ = io.Copy(in, out) // ends when the node closes the connection
}

// TestACMETogether shows that two nodes share certificates. For each name, the authority connects
// three times, to the nodes in turn. Therefore, both nodes must prove control of the name, although
// only one placed the order.
func TestACMETogether(t *testing.T) {
	rows(t)
	harness.NotStorage(t)
	t.Parallel()
	for _, proof := range []string{"tls-alpn-01", "http-01"} {
		t.Run(proof, func(t *testing.T) {
			f, c := newFront(t), acme.Config{
				HTTP:     harness.FreePort(t),
				TLS:      harness.FreePort(t),
				Lifetime: 90 * 24 * time.Hour,
			}

			scheme := "https://"
			if proof == "http-01" {
				c.HTTP, scheme = f.port, "http://"
			} else {
				c.TLS = f.port
			}

			authority := acme.Start(t, c)
			hosts := []string{"pbx.selvage.test", "id.selvage.test"}
			node := harness.Config{Env: authority.Env(hosts...)}
			n := harness.StartNodes(t, nil, node, node)

			var addresses []string
			for _, s := range n.Each {
				addresses = append(addresses,
					strings.TrimPrefix(map[string]string{"https://": s.HTTPS, "http://": s.HTTP}[scheme], scheme))
			}
			f.to <- addresses

			roots := authority.Roots(t)
			for _, host := range hosts {
				here, there := acme.Await(t, n.Each[0], host, roots), acme.Await(t, n.Each[1], host, roots)
				if !here.Equal(there) {
					t.Errorf("%s: the nodes have different certificates", host)
				}
			}
		})
	}
}
