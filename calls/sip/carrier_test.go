package sip_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/selvage/selvage/fabric"
)

// newCarrier returns a phone that acts as a gateway, and the gateway's id. more contains
// further fields of the gateway.
func (w *world) newCarrier(more map[string]json.RawMessage) (*phone, string) {
	w.t.Helper()
	p := w.newPhone("carrier")
	fields := map[string]json.RawMessage{
		"name":       quoted("Carrier"),
		"uri":        quoted("trunk@" + p.conn.LocalAddr().String()),
		"username":   quoted("trunk-1"),
		"password":   quoted("secret-trunk"),
		"caller_id":  quoted("+4930999"),
		"prefixes":   json.RawMessage(`["+49","+1"]`),
		"encryption": quoted("optional"),
		"ciphers":    json.RawMessage(`["AES_CM_128_HMAC_SHA1_80"]`),
		"codecs":     json.RawMessage(`["PCMU"]`),
	}
	maps.Copy(fields, more)
	return p, w.create(fabric.GatewayKind, fields).ID
}

// permit changes the project's rules for calls to phone numbers.
func (w *world) permit(rule fabric.OutboundCalls, prefixes fabric.Prefixes) {
	w.t.Helper()
	must[fabric.Project](w.t)(w.fabric.Projects.Update(w.t.Context(), w.project,
		fabric.ProjectChange{OutboundCalls: &rule, OutboundPrefixes: &prefixes}))
}

// assign routes calls to a phone number to a subscriber.
func (w *world) assign(number, subscriber string) {
	w.t.Helper()
	n := must[fabric.PhoneNumber](w.t)(w.fabric.PhoneNumbers.Create(w.t.Context(), w.project, number))
	must[fabric.Address](w.t)(
		w.fabric.Routes.AssignPhone(w.t.Context(), w.project, w.subscribers[subscriber], n.ID, "calling"))
}

// reply answers a request. The response also contains the given headers.
func (p *phone) reply(m message, status, headers string) {
	p.t.Helper()
	p.send(fmt.Sprintf("SIP/2.0 %s\r\nVia: %s\r\nFrom: %s\r\nTo: %s;tag=c\r\nCall-ID: %s\r\nCSeq: %s\r\n%s"+
		"Content-Length: 0\r\n\r\n", status, m.header("Via")[0], m.header("From")[0], m.header("To")[0],
		m.header("Call-ID")[0], m.header("CSeq")[0], headers))
}

// challenge answers an INVITE with a challenge, and returns the next INVITE.
func (p *phone) challenge(m message, header string) message {
	p.t.Helper()
	p.reply(m, "407 Proxy Authentication Required", header)
	p.expect("ACK")
	return p.expect("INVITE")
}

// checkAuthorization fails the test unless a request proves the password of the gateway by SHA-256.
func (p *phone) checkAuthorization(m message) {
	p.t.Helper()
	credentials := m.header("Proxy-Authorization")
	if len(credentials) != 1 {
		p.t.Fatalf("the gateway got\n%s\nwant one Proxy-Authorization", m)
	}

	value := func(name string) string {
		_, rest, _ := strings.Cut(credentials[0], name+"=")
		v, _, _ := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
		v, _, _ = strings.Cut(v, ",")
		return v
	}

	digest := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	user, target := digest("trunk-1:isp:secret-trunk"), digest("INVITE:"+value("uri"))
	want := digest(user + ":def:00000001:" + value("cnonce") + ":auth:" + target)
	if got := value("response"); got != want {
		p.t.Errorf("the response of the credentials is %s, want %s", got, want)
	}
	if got := value("opaque"); got != "o" {
		p.t.Errorf("the opaque value of the credentials is %q, want o", got)
	}
	if value("cnonce") == "" {
		p.t.Error("the credentials have no cnonce")
	}
}

// changeGateway changes fields of a gateway.
func (w *world) changeGateway(id string, fields map[string]json.RawMessage) {
	w.t.Helper()
	kind := w.fabric.Resources.Kinds().ByType(fabric.GatewayKind)
	must[fabric.Resource](w.t)(w.fabric.Resources.Update(w.t.Context(), w.project, kind, id, fields))
}
