package turn_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pion/logging"
	pion "github.com/pion/turn/v5"

	"github.com/selvage/selvage/calls/turn"
)

// A media is a UDP port that echoes packets. It takes the place of the media port.
type media struct {
	*net.UDPConn
	at netip.AddrPort
}

func openMedia(t *testing.T) media {
	t.Helper()
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return media{c, c.LocalAddr().(*net.UDPAddr).AddrPort()}
}

func (m media) echo() {
	b := make([]byte, 2048)
	for {
		n, from, err := m.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		_, _ = m.WriteToUDPAddrPort(b[:n], from) // the test fails if the packet is lost
	}
}

// advertised is the media address that this node advertises to clients. It is not an address of
// this machine.
var advertised = netip.MustParseAddrPort("203.0.113.7:8444")

// start starts a server that relays to a media port.
func start(t *testing.T, m media, others ...netip.AddrPort) (s *turn.Server, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err = turn.New(turn.Config{Listener: l, URL: "turn:" + l.Addr().String() + "?transport=tcp",
		Own: []netip.AddrPort{advertised}, Local: m.at, Others: func() []netip.AddrPort { return others },
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, l.Addr().String()
}

// connect connects a client with the given credentials.
func connect(t *testing.T, address, username, password string) *pion.Client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}

	c, err := pion.NewClient(&pion.ClientConfig{Conn: pion.NewSTUNConn(conn), STUNServerAddr: address,
		TURNServerAddr: address, Username: username, Password: password, Realm: "selvage",
		LoggerFactory: logging.NewDefaultLoggerFactory()})
	if err != nil {
		t.Fatal(err)
	}

	if err := c.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		_ = conn.Close()
	})
	return c
}

// allocate connects a client with valid credentials, and returns the client and its relay.
func allocate(t *testing.T, s *turn.Server, address string) (*pion.Client, net.PacketConn) {
	t.Helper()
	username, password := s.Credentials("ada", time.Now().Add(time.Hour))
	c := connect(t, address, username, password)
	relay, err := c.Allocate()
	if err != nil {
		t.Fatal(err)
	}
	return c, relay
}

// wantEcho sends a packet to an address and expects it back.
func wantEcho(t *testing.T, relay net.PacketConn, to netip.AddrPort, text string) {
	t.Helper()
	if _, err := relay.WriteTo([]byte(text), net.UDPAddrFromAddrPort(to)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2048)
	n, from, err := relay.ReadFrom(b)
	if err != nil || string(b[:n]) != text || from.String() != to.String() {
		t.Errorf("%q came from %v: %v, want %q from %v", b[:n], from, err, text, to)
	}
}

// TestRelay shows that clients can reach only the media ports of this deployment.
func TestRelay(t *testing.T) {
	own, other, stranger := openMedia(t), openMedia(t), openMedia(t)
	go own.echo()
	go other.echo()
	s, address := start(t, own, other.at)
	c, relay := allocate(t, s, address)
	if got := addrOf(relay).Addr(); got != advertised.Addr() {
		t.Errorf("the relayed address has the IP address %v, want %v", got, advertised.Addr())
	}

	wantEcho(t, relay, advertised, "to this node")
	if _, err := relay.WriteTo([]byte("to a stranger"), net.UDPAddrFromAddrPort(stranger.at)); err != nil {
		t.Fatal(err)
	}
	wantEcho(t, relay, other.at, "to another node")
	// A forwarded packet would have arrived by now.
	if err := stranger.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if n, _, err := stranger.ReadFromUDPAddrPort(make([]byte, 100)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("another port got %d bytes: %v, want nothing", n, err)
	}

	if err := c.CreatePermission(&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}); err == nil {
		t.Error("a client may send to another machine")
	}
}

func addrOf(c net.PacketConn) netip.AddrPort {
	return netip.MustParseAddrPort(c.LocalAddr().String())
}

// TestCredentials shows that only the server's credentials are valid, until they expire.
func TestCredentials(t *testing.T) {
	s, address := start(t, openMedia(t))
	username, password := s.Credentials("ada", time.Now().Add(time.Hour))
	late, latePassword := s.Credentials("ada", time.Now().Add(-time.Second))
	_, holder, _ := strings.Cut(username, ":")
	for name, of := range map[string][2]string{
		"no password":          {username, ""},
		"a different password": {username, password + "x"},
		"a different name":     {"9" + username, password},
		"no time":              {holder, password},
		"expired":              {late, latePassword},
	} {
		if relay, err := connect(t, address, of[0], of[1]).Allocate(); err == nil {
			t.Errorf("%s: allocated %v, want an error", name, relay.LocalAddr())
		}
	}

	if _, err := connect(t, address, username, password).Allocate(); err != nil {
		t.Error(err)
	}
}

// TestLimits shows that the allocations of a holder are limited, and that closed allocations do not
// count.
func TestLimits(t *testing.T) {
	s, address := start(t, openMedia(t))
	relays := make([]net.PacketConn, turn.MaxPerHolder)
	for i := range relays {
		_, relays[i] = allocate(t, s, address)
	}

	username, password := s.Credentials("ada", time.Now().Add(2*time.Hour)) // as from a later token
	_, err := connect(t, address, username, password).Allocate()
	if err == nil || !strings.Contains(err.Error(), "486") {
		t.Errorf("one allocation too many: %v, want 486", err)
	}

	if err := relays[0].Close(); err != nil {
		t.Fatal(err)
	}
	for late := time.After(time.Minute); s.Allocations() == turn.MaxPerHolder; { // Close is asynchronous
		select {
		case <-late:
			t.Fatal("the allocation did not end within a minute")
		case <-time.After(5 * time.Millisecond):
		}
	}

	if _, err := connect(t, address, username, password).Allocate(); err != nil {
		t.Errorf("an allocation after another one has ended: %v, want no error", err)
	}
}

// TestUnproven shows that a connection without an allocation is closed.
func TestUnproven(t *testing.T) {
	s, address := start(t, openMedia(t))
	s.WaitForProof(time.Millisecond)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if b, err := io.ReadAll(conn); err != nil || len(b) > 0 {
		t.Errorf("the connection ends with %q, %v, want no data and no error", b, err)
	}
}

// TestICEServers shows that clients get credentials only while the server works.
func TestICEServers(t *testing.T) {
	s, address := start(t, openMedia(t))
	if got := s.ICEServers("ada", time.Now().Add(time.Hour)); len(got) > 0 {
		t.Errorf("before the first check, clients get %v, want nothing", got)
	}

	s.Update(t.Context())
	got := s.ICEServers("ada", time.Now().Add(time.Hour))
	if len(got) != 1 {
		t.Fatalf("after a check, clients get %v, want one server", got)
	}
	if got[0].URLs[0] != "turn:"+address+"?transport=tcp" {
		t.Errorf("clients get %v, want the server's URL", got)
	}

	if _, err := connect(t, address, got[0].Username, got[0].Credential).Allocate(); err != nil {
		t.Errorf("an allocation with the credentials that clients get: %v, want no error", err)
	}

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Update(t.Context())
	if got := s.ICEServers("ada", time.Now().Add(time.Hour)); len(got) > 0 {
		t.Errorf("from a closed server, clients get %v, want nothing", got)
	}
}
