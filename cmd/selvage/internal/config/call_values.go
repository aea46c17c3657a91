package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// These are the types of the values for phones and for the media of calls.
type (
	mediaAddresses []netip.Addr
	turnURL        string
	digests        []string
	ngAddresses    []string // hosts with ports
	scriptsURL     string   // http or https
	portRange      string   // two numbers, or 0 for any free ports
)

func (m *mediaAddresses) UnmarshalText(text []byte) error {
	*m = nil
	for _, part := range split(string(text)) {
		ip, err := netip.ParseAddr(part)
		if err != nil || !reachesOneHost(ip) {
			return fmt.Errorf("needs IP addresses, such as 203.0.113.7; it has %q", part)
		}
		*m = append(*m, ip.Unmap())
	}
	return nil
}

// reachesOneHost reports whether an address belongs to one machine and has no zone.
func reachesOneHost(ip netip.Addr) bool {
	return !ip.IsUnspecified() && !ip.IsMulticast() && ip.Zone() == ""
}

// MarshalText returns the addresses, separated by commas.
func (m mediaAddresses) MarshalText() ([]byte, error) {
	var texts []string
	for _, ip := range m {
		texts = append(texts, ip.String())
	}
	return []byte(strings.Join(texts, ",")), nil
}

func (a *ngAddresses) UnmarshalText(text []byte) error {
	*a = nil
	for _, part := range split(string(text)) {
		if !isHostPort(part) {
			return fmt.Errorf("needs hosts with ports, such as 127.0.0.1:2223; it has %q", part)
		}
		*a = append(*a, part)
	}
	return nil
}

// isHostPort reports whether text is a host and the number of a port.
func isHostPort(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// MarshalText returns the addresses, separated by commas.
func (a ngAddresses) MarshalText() ([]byte, error) { return []byte(strings.Join(a, ",")), nil }

func (u *scriptsURL) UnmarshalText(text []byte) error {
	*u = scriptsURL(text)
	if len(text) == 0 {
		return nil
	}
	parsed, err := url.Parse(string(text))
	if err != nil || !isScriptsURL(parsed) {
		return errors.New("needs http:// or https:// and a host, such as https://ivr.example.com/calls")
	}
	return nil
}

func isScriptsURL(u *url.URL) bool {
	if u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	return u.Hostname() != "" && u.User == nil && u.Fragment == ""
}

func (r *portRange) UnmarshalText(text []byte) error {
	*r = portRange(text)
	if *r == "0" {
		return nil
	}
	if first, last := r.Bounds(); first < 1024 || last <= first {
		return fmt.Errorf("needs a range of at least two ports from 1024 on, such as 20000-20999, or 0; it is %q", text)
	}
	return nil
}

// Bounds returns the first and the last port, or zeros for any free ports.
func (r portRange) Bounds() (first, last int) {
	firstText, lastText, _ := strings.Cut(string(r), "-")
	firstPort, err := strconv.ParseUint(firstText, 10, 16)
	if err != nil {
		return 0, 0
	}
	lastPort, err := strconv.ParseUint(lastText, 10, 16)
	if err != nil {
		return 0, 0
	}
	return int(firstPort), int(lastPort)
}

func (d *digests) UnmarshalText(text []byte) error {
	*d = nil
	for _, name := range split(string(text)) {
		if name != "SHA-256" && name != "MD5" {
			return fmt.Errorf("needs SHA-256, MD5 or both; it has %q", name)
		}
		*d = append(*d, name)
	}
	if len(*d) == 0 {
		return errors.New("needs SHA-256, MD5 or both")
	}
	return nil
}

// MarshalText returns the names, separated by commas.
func (d digests) MarshalText() ([]byte, error) { return []byte(strings.Join(d, ",")), nil }

func (t *turnURL) UnmarshalText(text []byte) error {
	*t = turnURL(text)
	if *t != "" && !t.valid() {
		return fmt.Errorf("needs a URL such as turns:turn.example.com:443?transport=tcp; it is %q", text)
	}
	return nil
}

// valid reports whether t names a TURN server that is reached over TCP, with its port.
func (t turnURL) valid() bool {
	scheme, rest, _ := strings.Cut(string(t), ":")
	if scheme != "turn" && scheme != "turns" {
		return false
	}
	address, query, _ := strings.Cut(rest, "?")
	host, port, err := net.SplitHostPort(address)
	return err == nil && host != "" && port != "" && query == "transport=tcp"
}

// minSecret is the minimum length, in bytes, of a secret that signs requests.
const minSecret = 16

// checkScripts rejects a URL for scripts whose requests would have no signature, or a weak one.
func (c Config) checkScripts(from Origins) error {
	s := c.Calls.Scripts
	switch {
	case s.URL == "" && s.Secret != "":
		return from.errorf("calls.scripts.secret", "is set and calls.scripts.url is not: set both or neither")
	case s.URL != "" && len(s.Secret) < minSecret:
		return from.errorf("calls.scripts.url", "needs calls.scripts.secret, which signs the requests, "+
			"with at least %d characters", minSecret)
	}
	return nil
}
