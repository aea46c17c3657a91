package sip_test

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// sdpType is the header of requests and responses with a description of media.
const sdpType = "Content-Type: application/sdp\r\n"

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
	return &phone{
		world:     w,
		user:      user,
		password:  "secret-" + user,
		conn:      conn,
		rtp:       rtp,
		algorithm: "SHA-256",
		callID:    "call-" + user,
		seen:      map[string]bool{},
	}
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

// header returns the values of all headers with the given name.
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
func (p *phone) next(timeout time.Duration) message {
	p.t.Helper()
	_ = p.conn.SetReadDeadline(time.Now().Add(timeout))
	b := make([]byte, 8192)
	for {
		for m, ok := p.takeMessage(); ok; m, ok = p.takeMessage() {
			if m.kind() != "" && !p.seen[string(m)] {
				p.seen[string(m)] = true
				return m
			}
		}

		n, err := p.conn.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return ""
		}
		if err != nil {
			p.t.Fatal(err)
		}
		p.unread += string(b[:n])
	}
}

// takeMessage removes the first message from the received text. ok is false if the message is
// incomplete.
func (p *phone) takeMessage() (m message, ok bool) {
	p.unread = strings.TrimLeft(p.unread, "\r\n") // removes pings and answers to pings
	head, body, found := strings.Cut(p.unread, "\r\n\r\n")
	if !found {
		return "", false
	}
	length := 0
	if values := message(head + "\r\n").header("Content-Length"); len(values) > 0 {
		length, _ = strconv.Atoi(values[0])
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

// hasReason checks that a message to the phone has one Reason header, which contains a text.
func (p *phone) hasReason(m message, text string) {
	p.t.Helper()
	reasons := m.header("Reason")
	if len(reasons) != 1 {
		p.t.Fatalf("the %s to %s has the reasons %q, want one", m.kind(), p.user, reasons)
	}
	if !strings.Contains(reasons[0], text) {
		p.t.Errorf("the %s to %s has the reason %q, want it to contain %q", m.kind(), p.user, reasons[0], text)
	}
}

// with returns the request with different headers and a different body.
func (r request) with(headers, body string) request {
	r.headers = headers
	r.body = body
	return r
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

	newHash := map[string]func() hash.Hash{"SHA-256": sha256.New, "MD5": md5.New}[p.algorithm]
	digest := func(text string) string {
		h := newHash()
		h.Write([]byte(text))
		return hex.EncodeToString(h.Sum(nil))
	}

	nc := fmt.Sprintf("%08x", count)
	user, target := digest(p.user+":selvage:"+p.password), digest(method+":"+uri)
	response := digest(user + ":" + nonce[1] + ":" + nc + ":c:auth:" + target)
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
	return request{
		method:  "REGISTER",
		uri:     "sip:selvage.test",
		to:      "<sip:" + p.user + "@selvage.test>",
		from:    "reg",
		headers: fmt.Sprintf("Expires: %d\r\n", seconds),
	}
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

// invitation returns an INVITE to a user.
func (p *phone) invitation(to string) request {
	uri := "sip:" + to + "@selvage.test"
	return request{
		method:  "INVITE",
		uri:     uri,
		to:      "<" + uri + ">",
		from:    "inv",
		headers: sdpType,
		body:    p.offer("sendrecv"),
	}
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
	return request{method: method, uri: "sip:selvage@" + p.udp.String(), to: answered.header("To")[0], from: "inv"}
}

// inAnsweredDialog returns a request within a call that the phone answered. invite is the INVITE
// that the phone received. From then on, the phone's requests have the Call-ID of this call.
func (p *phone) inAnsweredDialog(method string, invite message) request {
	p.callID = invite.header("Call-ID")[0]
	return request{
		method: method,
		uri:    "sip:selvage@" + p.udp.String(),
		to:     invite.header("From")[0],
		from:   "phone-" + p.user,
	}
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
