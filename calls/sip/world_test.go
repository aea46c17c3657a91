package sip_test

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/calls/sip"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/revocation"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

const (
	deadline = time.Minute            // how long tests wait for the network
	silence  = 300 * time.Millisecond // how long tests wait for a message that must not arrive
)

// A world is a server for phones, with everything that the server needs.
type world struct {
	t       *testing.T
	fabric  *fabric.Fabric
	calls   *calls.Calls
	records *calls.Records
	store   *store.Store
	server  *sip.Server
	udp     *net.UDPAddr
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
	eventually(w.t, "the log to have "+text, func() bool {
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

	w := &world{t: t, store: rows, subscribers: map[string]string{}, browser: make(chan calls.Event, 1000)}
	w.fabric = fabric.New(fabric.Config{Stores: rows.Fabric(), Ring: storetest.Ring(t, dir, rows, nil),
		Revocations: revoked, Sessions: sessions, Host: "puc.localhost", Issuer: "http://localhost/"})
	engine := must[*media.Engine](t)(media.New(media.Config{Listen: "127.0.0.1:0"}))
	t.Cleanup(func() { _ = engine.Close() })

	udp, tcp := listen(t)
	w.udp = udp.LocalAddr().(*net.UDPAddr)
	log := slog.New(slog.NewTextHandler(&w.log, nil))
	secure := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	w.tls = secure.Addr().String()
	w.server = sip.New(sip.Config{UDP: udp, TCP: tcp, TLS: secure, Fabric: w.fabric, Sessions: sessions,
		Node: "node", Alone: true,
		Limits: limit.New(sessions, limit.Rates{limit.SIPPerUser: limit.Of(4, time.Hour),
			limit.SIPPerNetwork: limit.Of(6, time.Hour)}),
		AddressFor: engine.AddressFor, Log: log, Roots: trusted(),
		MayReach: func(_ string, at netip.AddrPort) bool { return at.Addr().IsLoopback() }})
	cfg := calls.Config{Fabric: w.fabric, Engine: engine, Clients: browsers{w}, Store: rows, Rooms: rows,
		Sessions: sessions, Phones: w.server.Phones, Trunk: w.server.Trunk, Node: "node", Log: log}
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

// A phone is a SIP client that sends messages composed by a test.
type phone struct {
	*world
	user, password string
	conn           net.Conn
	rtp            *net.UDPConn
	algorithm      string
	codec          int // the payload type in its offers
	callID         string
	seq            int
	seen           map[string]bool // received messages, to skip those that UDP repeats
	unread         string          // received text that next has not returned yet
}

// newPhone returns a phone with its own sockets.
func (w *world) newPhone(user string) *phone {
	w.t.Helper()
	conn := must[*net.UDPConn](w.t)(net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, w.udp))
	rtp := must[*net.UDPConn](w.t)(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	w.t.Cleanup(func() { _, _ = conn.Close(), rtp.Close() })
	return &phone{world: w, user: user, password: "secret-" + user, conn: conn, rtp: rtp, algorithm: "SHA-256",
		callID: "call-" + user, seen: map[string]bool{}}
}

// A message is a SIP message as text.
type message string

var (
	methodIn = regexp.MustCompile(`^(?:SIP/2\.0 (\d+)|([A-Z]+) )`)
	nonceIn  = regexp.MustCompile(`nonce="([^"]+)"`)
	portIn   = regexp.MustCompile(`m=audio (\d+) `)
)

// kind returns the status code of a response, or the method of a request.
func (m message) kind() string {
	match := methodIn.FindStringSubmatch(string(m))
	if match == nil {
		return ""
	}
	return match[1] + match[2]
}

// header returns the values of the headers with a name.
func (m message) header(name string) (lines []string) {
	for line := range strings.Lines(string(m)) {
		if found, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(found, name) {
			lines = append(lines, strings.TrimSpace(value))
		}
	}
	return lines
}

func (m message) body() string {
	_, body, _ := strings.Cut(string(m), "\r\n\r\n")
	return body
}

// send sends a message.
func (p *phone) send(text string) {
	p.t.Helper()
	if _, err := p.conn.Write([]byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

// next returns the next message that is neither a ping nor a repeat. It returns "" if no such
// message arrives in time.
func (p *phone) next(within time.Duration) message {
	p.t.Helper()
	b := make([]byte, 8192)
	for end := time.Now().Add(within); ; {
		m, ok := p.cut()
		if !ok {
			_ = p.conn.SetReadDeadline(end)
			n, err := p.conn.Read(b)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return ""
			}
			if err != nil {
				p.t.Fatal(err)
			}
			p.unread += string(b[:n])
			continue
		}
		if m.kind() != "" && !p.seen[string(m)] {
			p.seen[string(m)] = true
			return m
		}
	}
}

// cut removes the first message from the received text. ok is false if the message is incomplete.
func (p *phone) cut() (m message, ok bool) {
	p.unread = strings.TrimLeft(p.unread, "\r\n") // removes pings and answers to pings
	head, body, found := strings.Cut(p.unread, "\r\n\r\n")
	if !found {
		return "", false
	}
	length := 0
	if all := message(head + "\r\n").header("Content-Length"); len(all) > 0 {
		length, _ = strconv.Atoi(all[0])
	}
	if len(body) < length {
		return "", false
	}
	p.unread = body[length:]
	return message(head + "\r\n\r\n" + body[:length]), true
}

// expect returns the next message. It fails the test unless the message is of the given kind.
func (p *phone) expect(kind string) message {
	p.t.Helper()
	m := p.next(deadline)
	if m.kind() != kind {
		p.t.Fatalf("%s got\n%s\nwant %s", p.user, m, kind)
	}
	return m
}

// A request describes a request from a phone.
type request struct {
	method, uri, to string // to may contain a tag
	from            string // the tag in the From header
	headers         string
	body            string
	seq             int    // 0 means the next sequence number
	branch          string // "" means a new branch
}

// write returns the text of a request.
func (p *phone) write(r request, authorization string) string {
	if r.seq == 0 {
		p.seq++
		r.seq = p.seq
	}
	if r.branch == "" {
		r.branch = fmt.Sprintf("z9hG4bK-%s-%s-%d-%d", p.user, r.method, r.seq, len(authorization))
	}

	local := p.conn.LocalAddr().String()
	transport := strings.ToUpper(p.conn.LocalAddr().Network())
	if _, ok := p.conn.(*tls.Conn); ok {
		transport = "TLS"
	}

	return fmt.Sprintf("%s %s SIP/2.0\r\nVia: SIP/2.0/%s %s;rport;branch=%s\r\nMax-Forwards: 70\r\n"+
		"From: <sip:%s@selvage.test>;tag=%s\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: %d %s\r\n"+
		"Contact: <sip:%s@%s;transport=%s>\r\n%s%sContent-Length: %d\r\n\r\n%s",
		r.method, r.uri, transport, local, r.branch, p.user, r.from, r.to, p.callID, r.seq, r.method,
		p.user, local, strings.ToLower(transport), authorization, r.headers, len(r.body), r.body)
}

// authorize returns the Authorization header that answers a challenge.
func (p *phone) authorize(challenge message, method, uri string, count int) string {
	p.t.Helper()
	nonce := nonceIn.FindStringSubmatch(string(challenge))
	if nonce == nil {
		p.t.Fatalf("no nonce in\n%s", challenge)
	}

	sum := map[string]func() hash.Hash{"SHA-256": sha256.New, "MD5": md5.New}[p.algorithm]
	h := func(text string) string {
		s := sum()
		s.Write([]byte(text))
		return hex.EncodeToString(s.Sum(nil))
	}

	nc := fmt.Sprintf("%08x", count)
	response := h(h(p.user+":selvage:"+p.password) + ":" + nonce[1] + ":" + nc + ":c:auth:" + h(method+":"+uri))
	return fmt.Sprintf("Authorization: Digest username=%q, realm=\"selvage\", nonce=%q, uri=%q, response=%q, "+
		"algorithm=%s, qop=auth, nc=%s, cnonce=\"c\"\r\n", p.user, nonce[1], uri, response, p.algorithm, nc)
}

// ask sends a request, answers the challenge, and returns the authenticated request and the first
// response to it.
func (p *phone) ask(r request) (sent string, m message) {
	p.t.Helper()
	p.send(p.write(r, ""))
	challenge := p.expect("401")
	if r.method == "INVITE" {
		p.send(p.acknowledge(r, challenge))
	}
	sent = p.write(r, p.authorize(challenge, r.method, r.uri, 1))
	p.send(sent)
	return sent, p.next(deadline)
}

// acknowledge returns the ACK for a response that refuses an INVITE.
func (p *phone) acknowledge(r request, m message) string {
	via := strings.Join(m.header("Via"), ",")
	return fmt.Sprintf("ACK %s SIP/2.0\r\nVia: %s\r\nFrom: %s\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: %s\r\n"+
		"Content-Length: 0\r\n\r\n", r.uri, via, m.header("From")[0], m.header("To")[0], p.callID,
		strings.Replace(m.header("CSeq")[0], "INVITE", "ACK", 1))
}

// registration returns a REGISTER that expires after the given number of seconds.
func (p *phone) registration(seconds int) request {
	return request{method: "REGISTER", uri: "sip:selvage.test", to: "<sip:" + p.user + "@selvage.test>", from: "reg",
		headers: fmt.Sprintf("Expires: %d\r\n", seconds)}
}

// register registers the phone.
func (p *phone) register() message {
	p.t.Helper()
	_, m := p.ask(p.registration(600))
	if m.kind() != "200" {
		p.t.Fatalf("registering %s returned\n%s\nwant 200", p.user, m)
	}
	return m
}

// offer returns a description of the phone's media.
func (p *phone) offer(direction string) string {
	return fmt.Sprintf("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"+
		"m=audio %d RTP/AVP %d 101\r\na=rtpmap:101 telephone-event/8000\r\na=%s\r\n",
		p.rtp.LocalAddr().(*net.UDPAddr).Port, p.codec, direction)
}

const sdpType = "Content-Type: application/sdp\r\n"

// invitation returns an INVITE to a user.
func (p *phone) invitation(to string) request {
	uri := "sip:" + to + "@selvage.test"
	return request{method: "INVITE", uri: uri, to: "<" + uri + ">", from: "inv", headers: sdpType,
		body: p.offer("sendrecv")}
}

// dial calls a user. It returns the request, and the first response other than 100.
func (p *phone) dial(to string) (request, message) {
	p.t.Helper()
	p.callID = fmt.Sprintf("%s-%d", p.user, time.Now().UnixNano())
	r := p.invitation(to)
	_, m := p.ask(r)
	if m.kind() == "100" {
		m = p.next(deadline)
	}
	return r, m
}

// dialed calls an address, and returns the first response other than 100 and 180.
func (p *phone) dialed(to string) message {
	p.t.Helper()
	_, m := p.dial(to)
	for m.kind() == "180" {
		m = p.next(deadline)
	}
	return m
}

// inDialog returns a request within a call. answered is the 200 that accepted the call.
func (p *phone) inDialog(method string, answered message) request {
	r := request{method: method, uri: "sip:selvage@" + p.udp.String(), to: answered.header("To")[0], from: "inv"}
	return r
}

// acks acknowledges the 200 to an INVITE in a call. seq is the sequence number of the INVITE.
func (p *phone) acks(answered message, seq int) {
	p.t.Helper()
	ack := p.inDialog("ACK", answered)
	ack.seq = seq
	p.send(p.write(ack, ""))
}

// respond answers a request from the server. If body is not "", it is a media description.
func (p *phone) respond(m message, status, body string) {
	p.t.Helper()
	to, more := m.header("To")[0], ""
	if !strings.Contains(to, ";tag=") {
		to += ";tag=phone-" + p.user
	}
	if body != "" {
		more = sdpType
	}
	p.send(fmt.Sprintf("SIP/2.0 %s\r\nVia: %s\r\nFrom: %s\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: %s\r\n"+
		"Contact: <sip:%s@%s>\r\n%sContent-Length: %d\r\n\r\n%s", status, m.header("Via")[0], m.header("From")[0], to,
		m.header("Call-ID")[0], m.header("CSeq")[0], p.user, p.conn.LocalAddr(), more, len(body), body))
}

// mediaOf returns the address at which the server expects RTP, as stated in m.
func (p *phone) mediaOf(m message) *net.UDPAddr {
	p.t.Helper()
	match := portIn.FindStringSubmatch(string(m))
	if match == nil {
		p.t.Fatalf("no audio in\n%s", m)
	}
	port := must[int](p.t)(strconv.Atoi(match[1]))
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)))
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
