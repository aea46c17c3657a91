package cluster

import (
	"context"
	"strings"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/selvage/selvage/test/harness"
)

// A link is a network path to a server, which a test can make slow or cut.
type link struct {
	t     harness.T
	proxy *toxiproxy.Proxy
}

// newLink returns a link to an address. The address of the link itself is link.proxy.Listen.
func newLink(t harness.T, to string) *link {
	t.Helper()
	log := zerolog.Nop()
	p := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), log), to, "127.0.0.1:0", to)
	if err := p.Start(); err != nil {
		t.Fatalf("starting a link to %s: %v", to, err)
	}
	t.Cleanup(p.Stop)
	return &link{t: t, proxy: p}
}

// via returns a URL whose server is reached over a new link.
func via(t harness.T, url string) (string, *link) {
	t.Helper()
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest[strings.LastIndex(rest, "@")+1:], "/")
	l := newLink(t, host)
	return strings.Replace(url, host, l.proxy.Listen, 1), l
}

// disturb changes what happens to the bytes of new and open connections; see the toxics of
// github.com/Shopify/toxiproxy.
func (l *link) disturb(toxic string) {
	l.t.Helper()
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		l.t.Fatalf("disturbing a link: %v", err)
	}
}

// mend undoes disturb.
func (l *link) mend() { l.proxy.Toxics.ResetToxics(context.Background()) }
