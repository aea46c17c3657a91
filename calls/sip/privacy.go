package sip

import (
	"strings"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// anonymous is the party of a caller who withholds the number, or whose number is unknown.
var anonymous = calls.Party{Address: calls.Anonymous, Name: "Anonymous"}

// hidden returns the party of a phone that hides its subscriber or SIP endpoint, which still pays for
// the call.
func hidden(c fabric.SIPCredential) *calls.Party {
	p := anonymous
	p.SubscriberID = c.SubscriberID
	p.EndpointID = c.EndpointID
	return &p
}

// isHidden reports whether a party is hidden. Anonymous callers from outside are not hidden: in their
// calls, a gateway gets the project's own number, which says nothing about them.
func isHidden(p calls.Party) bool {
	isOwn := p.SubscriberID != "" || p.EndpointID != ""
	return p.Address == calls.Anonymous && isOwn
}

// hideCaller makes the INVITE to a gateway ask to hide the caller from the called party. The gateway itself
// learns the number (RFC 3325, section 9.1). The caller holds mu.
func (d *dialog) hideCaller() {
	d.identity = []sip.Header{sip.NewHeader("Privacy", "id")}
	if number := d.gateway.CallerID; number != "" {
		own := sip.Uri{Scheme: "sip", User: number, Host: uriHost(d.gateway.Host)}
		d.identity = append(d.identity, sip.NewHeader("P-Asserted-Identity", "<"+own.String()+">"))
	}
	d.from = &sip.FromHeader{
		DisplayName: anonymous.Name,
		Address:     sip.Uri{Scheme: "sip", User: calls.Anonymous, Host: noHost},
		Params:      sip.HeaderParams{{K: "tag", V: d.key.tag}},
	}
}

// noHost is the host in the From header of an anonymous caller (RFC 3323, section 4.1.1.3).
const noHost = "anonymous.invalid"

// withholdsCaller reports whether a request asks to hide the caller from the called party (RFC 3323,
// section 4.2, and RFC 3325, section 9.3).
func withholdsCaller(r *sip.Request) bool {
	if strings.EqualFold(r.From().Address.Host, noHost) {
		return true
	}
	for _, h := range r.GetHeaders("privacy") {
		isSeparator := func(c rune) bool { return strings.ContainsRune(";, \t", c) }
		for value := range strings.FieldsFuncSeq(strings.ToLower(h.Value()), isSeparator) {
			if value == "id" || value == "user" || value == "header" {
				return true
			}
		}
	}
	return false
}
