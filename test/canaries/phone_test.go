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

// realm is the realm in which phones authenticate.
const realm = "selvage"

// A sipLine sends SIP requests over UDP (RFC 3261).
type sipLine struct {
	t    *testing.T
	conn net.Conn
	sent int // number of requests that were sent
}

// newSIPLine connects to the SIP port of a server. The server writes the address, such as
// "127.0.0.1:5060", to run.json.
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
		t.Fatalf("run.json does not contain the SIP address: %v %s", err, raw)
	}

	conn, err := net.Dial("udp", run.SIP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &sipLine{t: t, conn: conn}
}

// send sends a REGISTER request for a user. Unless authorization is "", the request has an
// Authorization header.
func (l *sipLine) send(user, contact, authorization string) {
	l.t.Helper()
	l.sent++
	lines := []string{
		"REGISTER sip:localhost SIP/2.0",
		fmt.Sprintf("Via: SIP/2.0/UDP %s;branch=z9hG4bK%d;rport", l.conn.LocalAddr(), l.sent),
		fmt.Sprintf("From: <sip:%s@localhost>;tag=%d", user, l.sent),
		fmt.Sprintf("To: <sip:%s@localhost>", user),
		"Call-ID: canary",
		fmt.Sprintf("CSeq: %d REGISTER", l.sent),
		fmt.Sprintf("Contact: <sip:%s@127.0.0.1>", contact),
	}
	if authorization != "" {
		lines = append(lines, "Authorization: "+authorization)
	}
	lines = append(lines, "Content-Length: 0", "", "") // an empty line ends the header

	if _, err := l.conn.Write([]byte(strings.Join(lines, "\r\n"))); err != nil {
		l.t.Fatal(err)
	}
}

// receive waits for the next response and returns it.
func (l *sipLine) receive() string {
	l.t.Helper()
	if err := l.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		l.t.Fatal(err)
	}
	packet := make([]byte, 64<<10)
	n, err := l.conn.Read(packet)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(packet[:n])
}

// A digest contains the fields of an Authorization header (RFC 7616, section 3.4).
type digest struct {
	username string
	nonce    string // the server's nonce
	uri      string
	response string // proves that the client knows the password
	count    string // how many requests the client has sent with the server's nonce
	cnonce   string // the client's nonce
}

// header returns the value of the Authorization header.
func (d digest) header() string {
	fields := []string{
		fmt.Sprintf(`username="%s"`, d.username),
		fmt.Sprintf(`realm="%s"`, realm),
		fmt.Sprintf(`nonce="%s"`, d.nonce),
		fmt.Sprintf(`uri="%s"`, d.uri),
		fmt.Sprintf(`response="%s"`, d.response),
		"algorithm=SHA-256",
		"qop=auth",
		"nc=" + d.count,
		fmt.Sprintf(`cnonce="%s"`, d.cnonce),
	}
	return "Digest " + strings.Join(fields, ", ")
}

// sign sets the response for a REGISTER request with the given password (RFC 7616, section 3.4.1).
func (d *digest) sign(password string) {
	user := hash(d.username, realm, password)
	request := hash("REGISTER", d.uri)
	d.response = hash(user, d.nonce, d.count, d.cnonce, "auth", request)
}

// hash returns the SHA-256 of texts, separated by colons, in hex.
func hash(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, ":")))
	return hex.EncodeToString(sum[:])
}

// offeredNonce matches the nonce in the server's response to a request without credentials.
var offeredNonce = regexp.MustCompile(`nonce="([^"]+)", algorithm=SHA-256`)

// register registers a phone with its password.
func (l *sipLine) register(user, password string) {
	l.t.Helper()
	l.send(user, user, "")
	nonce := offeredNonce.FindStringSubmatch(l.receive())
	if nonce == nil {
		l.t.Fatal("the server sent no nonce")
	}

	credentials := digest{
		username: user,
		nonce:    nonce[1],
		uri:      "sip:localhost",
		count:    "00000001",
		cnonce:   "c",
	}
	credentials.sign(password)
	l.send(user, user, credentials.header())
	if got := l.receive(); !strings.HasPrefix(got, "SIP/2.0 200 ") {
		l.t.Fatalf("the phone was not registered: %s", got)
	}
}

// sprayPhones sends each secret as the user, the contact and the credentials of SIP requests, which
// the server refuses. It reads no responses: a response may repeat a secret to the phone that sent
// it, so only what the server stores and logs is searched.
func (n *nest) sprayPhones(t *testing.T) {
	t.Helper()
	l := newSIPLine(t, n.Server)
	for _, secret := range n.secrets {
		credentials := digest{
			username: secret,
			nonce:    secret,
			uri:      "sip:" + secret,
			response: secret,
			count:    "1",
			cnonce:   secret,
		}
		l.send(secret, secret, credentials.header())

		// SIP has no Basic authentication, but a confused phone may try it.
		l.send("unknown-user", secret, "Basic "+secret)
	}
}
