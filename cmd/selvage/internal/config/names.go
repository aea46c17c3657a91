package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

// The names that HTTPS needs.
type (
	fileName     string
	hostNames    []string // in DNS
	directoryURL string   // of ACME
)

func (f *fileName) UnmarshalText(text []byte) error {
	*f = fileName(text)
	if strings.ContainsAny(string(text), "\n\r") {
		return errors.New("needs the name of a file, not what is in it")
	}
	return nil
}

// certifiable matches what authorities certify by ACME: names with a dot in them,
// and no wildcards, which need a proof in DNS.
var certifiable = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

func (h *hostNames) UnmarshalText(text []byte) error {
	*h = split(string(text))
	for _, name := range *h {
		if !certifiable.MatchString(name) || net.ParseIP(name) != nil {
			return fmt.Errorf("needs names such as pbx.example.org, in small letters (xn--… for others), without * or a port; %q is none", name)
		}
	}
	return nil
}

func (u *directoryURL) UnmarshalText(text []byte) error {
	*u = directoryURL(text)
	if p, err := url.Parse(string(text)); err != nil || p.Scheme != "https" || p.Host == "" || p.User != nil {
		return errors.New("needs the https:// URL of an ACME directory")
	}
	return nil
}
