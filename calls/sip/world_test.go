package sip_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/calls/sip"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/session"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

const (
	deadline = time.Minute            // how long tests wait for the network
	silence  = 300 * time.Millisecond // how long tests wait for a message that must not arrive
)

// remoteNetwork is a network whose phones must send their media to a different address of the server
// than other phones.
var remoteNetwork = netip.MustParsePrefix("127.0.3.0/24")

// A world is a server for phones, with everything that the server needs.
type world struct {
	t       *testing.T
	fabric  *fabric.Fabric
	calls   *calls.Calls
	records *calls.Records
	store   *store.Store
	shared  session.Store
	names   zone
	server  *sip.Server
	udp     *net.UDPAddr
	streams *observed
	tls     string // the address for SIP over TLS
	project string

	subscribers map[string]string // subscriber ids by name
	browser     chan calls.Event  // events for clients that are not phones
	log         journal
}

// A journal is a log that tests read.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

// logs waits until the server has logged a text.
func (w *world) logs(text string) {
	w.t.Helper()
	eventually(w.t, "the log to contain "+text, func() bool {
		w.log.mu.Lock()
		defer w.log.mu.Unlock()
		return strings.Contains(w.log.text.String(), text)
	})
}

// browsers passes the events of clients that are not phones to the test.
type browsers struct{ *world }

func (b browsers) Tell(to calls.Socket, e calls.Event) {
	if to.Phone.IsValid() {
		b.server.Tell(to, e)
		return
	}
	b.browser <- e
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// newWorld starts a server on loopback. The functions in change may modify the configuration of its
// calls. newWorld creates the subscribers alice and bob, whose SIP passwords are secret-alice and
// secret-bob.
func newWorld(t *testing.T, change ...func(*calls.Config)) *world {
	t.Helper()
	t.Parallel()
	dir := storetest.Dir(t)
	rows := storetest.Open(t, dir, nil)
	sessions := must[*sessionsql.Store](t)(sessionsql.Open(t.Context(), sessionsql.Config{Dir: dir}))
	t.Cleanup(func() { _ = sessions.Close() })
	revoked := revocation.New(rows, time.Now)
	if err := revoked.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}

	w := &world{
		t:           t,
		store:       rows,
		shared:      sessions,
		subscribers: map[string]string{},
		browser:     make(chan calls.Event, 1000),
	}
	w.fabric = fabric.New(fabric.Config{
		Stores:      rows.Fabric(),
		Ring:        storetest.Ring(t, dir, rows, nil),
		Revocations: revoked,
		Sessions:    sessions,
		Host:        "puc.localhost",
		Issuer:      "http://localhost/",
	})
	engine := must[*media.Engine](t)(media.New(media.Config{Listen: "127.0.0.1:0"}))
	t.Cleanup(func() { _ = engine.Close() })

	udp, tcp := listen(t)
	w.udp = udp.LocalAddr().(*net.UDPAddr)
	w.streams = &observed{Listener: tcp}
	log := slog.New(slog.NewTextHandler(&w.log, nil))
	secure := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	w.tls = secure.Addr().String()
	rates := limit.Rates{limit.SIPPerUser: limit.Of(4, time.Hour), limit.SIPPerNetwork: limit.Of(6, time.Hour)}
	addressFor := func(phone netip.Addr) netip.Addr {
		switch {
		case remoteNetwork.Contains(phone):
			return remoteNetwork.Addr()
		case phone.Is6():
			return netip.IPv6Loopback()
		}
		return engine.AddressFor(phone)
	}
	w.server = sip.New(sip.Config{
		UDP:        udp,
		TCP:        w.streams,
		TLS:        secure,
		Fabric:     w.fabric,
		Sessions:   sessions,
		Node:       "node",
		Alone:      true,
		Limits:     limit.New(sessions, rates),
		AddressFor: addressFor,
		Log:        log,
		Roots:      trusted(),
		Resolver:   &net.Resolver{PreferGo: true, Dial: w.names.dial},
		MayReach:   func(_ string, at netip.AddrPort) bool { return at.Addr().IsLoopback() },
	})
	cfg := calls.Config{
		Fabric:   w.fabric,
		Engine:   engine,
		Clients:  browsers{w},
		Store:    rows,
		Rooms:    rows,
		Sessions: sessions,
		Phones:   w.server.Phones,
		Trunk:    w.server.Trunk,
		Node:     "node",
		Log:      log,
	}
	for _, f := range change {
		f(&cfg)
	}

	w.calls = calls.New(cfg)
	w.records = calls.NewRecords(rows)
	w.server.Carry(w.calls)
	w.server.Secure(&tls.Config{Certificates: []tls.Certificate{certificate()}, MinVersion: tls.VersionTLS12})

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); w.server.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	w.project = must[fabric.Project](t)(w.fabric.Projects.Create(t.Context(), "one")).ID
	w.subscriber("alice")
	w.subscriber("bob")
	return w
}

// An observed is a listener that records how long the server waits for the next message of a
// connection.
type observed struct {
	net.Listener
	until atomic.Int64 // the last deadline for reading, as Unix time in nanoseconds
}

// Accept implements net.Listener.
func (o *observed) Accept() (net.Conn, error) {
	conn, err := o.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return observedConn{conn, o}, nil
}

// deadline returns the last deadline for reading from a connection.
func (o *observed) deadline() time.Time { return time.Unix(0, o.until.Load()) }

// An observedConn is a connection of an observed.
type observedConn struct {
	net.Conn
	listener *observed
}

// SetReadDeadline implements net.Conn.
func (c observedConn) SetReadDeadline(t time.Time) error {
	c.listener.until.Store(t.UnixNano())
	return c.Conn.SetReadDeadline(t)
}

// listen listens on the same port for UDP and TCP.
func listen(t *testing.T) (*net.UDPConn, *net.TCPListener) {
	t.Helper()
	for range 20 {
		tcp := must[*net.TCPListener](t)(net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))
		at := tcp.Addr().(*net.TCPAddr)
		if udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: at.IP, Port: at.Port}); err == nil {
			return udp, tcp
		}
		_ = tcp.Close()
	}
	t.Fatal("no port is free for both UDP and TCP")
	return nil, nil
}

// subscriber creates a subscriber with SIP credentials.
func (w *world) subscriber(name string) (subscriber, credential string) {
	w.t.Helper()
	email, first := name+"@example.com", name
	s := must[fabric.Subscriber](w.t)(w.fabric.Subscribers.Create(w.t.Context(), w.project,
		fabric.SubscriberInput{Email: &email, Profile: fabric.Profile{DisplayName: &first}}))
	c := must[fabric.SIPCredential](w.t)(w.fabric.SIP.CreateCredential(w.t.Context(), w.project, s.ID,
		map[string]json.RawMessage{"username": quoted(name), "password": quoted("secret-" + name)}))
	w.subscribers[name] = s.ID
	return s.ID, c.ID
}

func quoted(text string) json.RawMessage { return json.RawMessage(strconv.Quote(text)) }

// create creates a resource of a type, such as video_room.
func (w *world) create(typ string, members map[string]json.RawMessage) fabric.Resource {
	w.t.Helper()
	resources := w.fabric.Resources
	return must[fabric.Resource](w.t)(
		resources.Create(w.t.Context(), w.project, resources.Kinds().ByType(typ), members))
}

// lastCall returns the newest record of a call.
func (w *world) lastCall() calls.Record {
	w.t.Helper()
	p := must[page.Page[calls.Record]](w.t)(
		w.records.List(w.t.Context(), w.project, calls.Filter{}, page.Query{Size: 1}))
	if len(p.Items) == 0 {
		w.t.Fatal("there is no record of a call")
	}
	return p.Items[0]
}

// recordHas checks the newest record of a call, and returns it. The record must have the values
// that set assigns.
func (w *world) recordHas(set func(want *calls.Record)) calls.Record {
	w.t.Helper()
	got := w.lastCall()
	want := got
	set(&want)
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("the record of the call is wrong (-want +got):\n%s", diff)
	}
	return got
}

// isOver waits until all calls have ended.
func (w *world) isOver() {
	w.t.Helper()
	eventually(w.t, "the calls to end", func() bool {
		return w.calls.Stats().Calls == 0 && w.server.Stats().Dialogs == 0
	})
}

// counts holds the numbers of rooms, calls and legs on a server.
type counts struct{ rooms, calls, legs int }

// running checks how many rooms, calls and legs the server has.
func (w *world) running(want counts) {
	w.t.Helper()
	stats := w.calls.Stats()
	if got := (counts{rooms: stats.Rooms, calls: stats.Calls, legs: stats.Legs}); got != want {
		w.t.Errorf("the server has %+v, want %+v", got, want)
	}
}

// eventually waits until ready returns true.
func eventually(t *testing.T, what string, ready func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(deadline); !ready(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}
