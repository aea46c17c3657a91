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
	"github.com/pion/stun/v4"
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
	return media{UDPConn: c, at: c.LocalAddr().(*net.UDPAddr).AddrPort()}
}

// echo returns each packet to its sender, until the port is closed.
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

// start starts a server that relays to a media port, and to those of other nodes.
func start(t *testing.T, m media, others ...netip.AddrPort) (s *turn.Server, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err = turn.New(turn.Config{
		Listener: l,
		URL:      "turn:" + l.Addr().String() + "?transport=tcp",
		Own:      []netip.AddrPort{advertised},
		Local:    m.at,
		Others:   func() []netip.AddrPort { return others },
		Longest:  4 * time.Hour,
		Log:      slog.New(slog.DiscardHandler),
	})
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

	c, err := pion.NewClient(&pion.ClientConfig{
		Conn:           pion.NewSTUNConn(conn),
		STUNServerAddr: address,
		TURNServerAddr: address,
		Username:       username,
		Password:       password,
		Realm:          "selvage",
		LoggerFactory:  logging.NewDefaultLoggerFactory(),
	})
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
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b[:n]); got != text {
		t.Errorf("the packet %q came back, want %q", got, text)
	}
	if from.String() != to.String() {
		t.Errorf("the packet came from %v, want %v", from, to)
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
	wantEcho(t, relay, other.at, "to a different node")
	// A forwarded packet would have arrived by now.
	if err := stranger.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	_, _, err := stranger.ReadFromUDPAddrPort(make([]byte, 100))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading from a port outside the deployment: %v, want %v", err, os.ErrDeadlineExceeded)
	}

	if err := c.CreatePermission(&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}); err == nil {
		t.Error("a client may send to a machine outside the deployment, want an error")
	}
}

func addrOf(c net.PacketConn) netip.AddrPort {
	return netip.MustParseAddrPort(c.LocalAddr().String())
}

// TestCredentials shows that only the server's credentials are valid, until they expire.
func TestCredentials(t *testing.T) {
	s, address := start(t, openMedia(t))
	username, password := s.Credentials("ada", time.Now().Add(time.Hour))
	expired, expiredPassword := s.Credentials("ada", time.Now().Add(-time.Second))
	_, holder, _ := strings.Cut(username, ":")
	for name, tt := range map[string]struct{ username, password string }{
		"no password":          {username, ""},
		"a different password": {username, password + "x"},
		"a different name":     {"9" + username, password},
		"no time":              {holder, password},
		"expired":              {expired, expiredPassword},
	} {
		if _, err := connect(t, address, tt.username, tt.password).Allocate(); err == nil {
			t.Errorf("%s: Allocate succeeds, want an error", name)
		}
	}

	if _, err := connect(t, address, username, password).Allocate(); err != nil {
		t.Errorf("valid credentials: Allocate = %v, want no error", err)
	}
}

// TestExpired shows that an allocation can be used until the longest call has ended, although its
// credentials have expired. They then permit no new allocation.
func TestExpired(t *testing.T) {
	s, _ := start(t, openMedia(t))
	for _, tt := range []struct {
		expired time.Duration // before now
		method  stun.Method
		want    bool
	}{
		{-time.Minute, stun.MethodAllocate, true},
		{time.Minute, stun.MethodAllocate, false},
		{time.Minute, stun.MethodRefresh, true},
		{time.Minute, stun.MethodCreatePermission, true},
		{time.Minute, stun.MethodChannelBind, true},
		{4*time.Hour - time.Minute, stun.MethodRefresh, true},
		{4*time.Hour + time.Minute, stun.MethodRefresh, false},
	} {
		username, _ := s.Credentials("ada", time.Now().Add(-tt.expired))
		if got := s.Accepts(tt.method, username); got != tt.want {
			t.Errorf("%v after the credentials have expired, %s is accepted: %v, want %v",
				tt.expired, tt.method, got, tt.want)
		}
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

	username, password := s.Credentials("ada", time.Now().Add(2*time.Hour)) // as with a later token
	_, err := connect(t, address, username, password).Allocate()
	if err == nil || !strings.Contains(err.Error(), "486") {
		t.Errorf("one allocation too many: Allocate = %v, want an error with 486", err)
	}

	if err := relays[0].Close(); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(time.Minute)
	for s.Allocations() == turn.MaxPerHolder { // Close is asynchronous
		select {
		case <-deadline:
			t.Fatal("the allocation did not end within a minute")
		case <-time.After(5 * time.Millisecond):
		}
	}

	if _, err := connect(t, address, username, password).Allocate(); err != nil {
		t.Errorf("an allocation after an earlier one has ended: %v, want no error", err)
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
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("reading until the connection is closed: %v", err)
	}
	if len(b) > 0 {
		t.Errorf("the server sent %q, want nothing", b)
	}
}

// TestICEServers shows that clients get credentials only while the server works.
func TestICEServers(t *testing.T) {
	s, address := start(t, openMedia(t))
	if got := s.ICEServers("ada", time.Now().Add(time.Hour)); len(got) > 0 {
		t.Errorf("before the first check, clients get %v, want nothing", got)
	}

	s.Update(t.Context())
	servers := s.ICEServers("ada", time.Now().Add(time.Hour))
	if len(servers) != 1 {
		t.Fatalf("after a check, clients get %v, want one server", servers)
	}
	server := servers[0]
	if want := "turn:" + address + "?transport=tcp"; server.URLs[0] != want {
		t.Errorf("clients get the URL %s, want %s", server.URLs[0], want)
	}
	if _, err := connect(t, address, server.Username, server.Credential).Allocate(); err != nil {
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
