package canaries

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A sipLine sends SIP requests over UDP.
type sipLine struct {
	t    *testing.T
	conn net.Conn
	n    int
}

// newSIPLine connects to the server's SIP port.
func newSIPLine(t *testing.T, s *harness.Server) *sipLine {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.Data, "run.json"))
	if err != nil {
		t.Fatal(err)
	}

	var run struct {
		SIP string `json:"sip"`
	}
	if err := json.Unmarshal(raw, &run); err != nil || run.SIP == "" {
		t.Fatalf("run.json names no SIP port: %v %s", err, raw)
	}

	conn, err := net.Dial("udp", run.SIP[strings.LastIndex(run.SIP, "/")+1:])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // all reads have ended
	return &sipLine{t: t, conn: conn}
}

// send sends a REGISTER for a user, with an Authorization header unless it is "".
func (l *sipLine) send(user, contact, authorization string) {
	l.t.Helper()
	l.n++
	text := "REGISTER sip:localhost SIP/2.0\r\n" +
		fmt.Sprintf("Via: SIP/2.0/UDP %s;branch=z9hG4bK%d;rport\r\n", l.conn.LocalAddr(), l.n) +
		fmt.Sprintf("From: <sip:%s@localhost>;tag=%d\r\nTo: <sip:%s@localhost>\r\n", user, l.n, user) +
		fmt.Sprintf("Call-ID: canary\r\nCSeq: %d REGISTER\r\nContact: <sip:%s@127.0.0.1>\r\n", l.n, contact)
	if authorization != "" {
		text += "Authorization: " + authorization + "\r\n"
	}
	if _, err := l.conn.Write([]byte(text + "Content-Length: 0\r\n\r\n")); err != nil {
		l.t.Fatal(err)
	}
}

// receive returns the next response.
func (l *sipLine) receive() string {
	l.t.Helper()
	if err := l.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		l.t.Fatal(err)
	}
	b := make([]byte, 64<<10)
	n, err := l.conn.Read(b)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(b[:n])
}

var sipNonce = regexp.MustCompile(`nonce="([^"]+)", algorithm=SHA-256`)

// register registers a phone with its password (RFC 7616).
func (l *sipLine) register(user, password string) {
	l.t.Helper()
	l.send(user, user, "")
	nonce := sipNonce.FindStringSubmatch(l.receive())
	if nonce == nil {
		l.t.Fatal("the server sent no nonce")
	}

	const uri, realm = "sip:localhost", "selvage"
	sum := func(texts ...string) string {
		h := sha256.Sum256([]byte(strings.Join(texts, ":")))
		return hex.EncodeToString(h[:])
	}

	response := sum(sum(user, realm, password), nonce[1], "00000001", "c", "auth", sum("REGISTER", uri))
	l.send(user, user, fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s", response="%s", `+
		`algorithm=SHA-256, qop=auth, nc=00000001, cnonce="c"`, user, realm, nonce[1], uri, response))
	if got := l.receive(); !strings.HasPrefix(got, "SIP/2.0 200 ") {
		l.t.Fatalf("the phone was not registered: %s", got)
	}
}

// sprayPhones sends each secret in a SIP request without valid credentials.
func (n *nest) sprayPhones(t *testing.T) {
	t.Helper()
	l := newSIPLine(t, n.Server)
	for _, secret := range n.secrets {
		l.send(secret, secret, fmt.Sprintf(`Digest username="%s", realm="selvage", nonce="%s", uri="sip:%s", `+
			`response="%s", algorithm=SHA-256, qop=auth, nc=1, cnonce="%s"`, secret, secret, secret, secret, secret))
		l.send("x", secret, "Basic "+secret)
	}
}
