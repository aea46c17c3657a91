package sip

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"
)

// A contact is a Contact header in a REGISTER.
type contact struct {
	uri     string
	address sip.Uri       // the parsed uri
	expires time.Duration // 0 removes the contact
}

var errContact = errors.New("a contact cannot be used")

// contactsOf returns the contacts in a request. wildcard is true if the request removes all
// contacts.
func contactsOf(r *sip.Request) (contacts []contact, wildcard bool, err error) {
	general := maxExpiry
	if h := r.GetHeader("expires"); h != nil {
		general = seconds(h.Value())
	}

	headers := r.GetHeaders("contact")
	for _, h := range headers {
		c, ok := h.(*sip.ContactHeader)
		switch {
		case !ok || len(contacts) == maxBindings:
			return nil, false, errContact
		case c.Address.Wildcard:
			if len(headers) > 1 || general != 0 {
				return nil, false, errContact
			}
			return nil, true, nil
		}

		one := contact{uri: c.Address.String(), address: c.Address, expires: general}
		if own, ok := c.Params.Get("expires"); ok {
			one.expires = seconds(own)
		}
		scheme := strings.ToLower(c.Address.Scheme)
		if scheme != "sip" && scheme != "sips" {
			return nil, false, errContact
		}
		if len(one.uri) > maxContactURI {
			return nil, false, errContact
		}
		contacts = append(contacts, one)
	}
	return contacts, false, nil
}

// seconds parses a number of seconds. If the number is larger than maxExpiry, or the text is
// malformed, it returns maxExpiry.
func seconds(text string) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return maxExpiry
	}
	return min(time.Duration(n)*time.Second, maxExpiry)
}
