package config

import (
	"errors"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

type (
	collectorURL string   // URL of a collector of traces, with a path, or off
	headerValues []string // NAME=VALUE
	percent      int      // from 1 to 100
)

func (u *collectorURL) UnmarshalText(text []byte) error {
	*u = collectorURL(text)
	if u.Off() {
		return nil
	}
	parsed, err := url.Parse(string(text))
	if err != nil || !isCollector(parsed) {
		return errors.New("needs off, or http:// or https:// and a host, such as http://127.0.0.1:4318")
	}
	if parsed.Path == "" || parsed.Path == "/" {
		parsed.Path = "/v1/traces" // OTLP 1.0, section "OTLP/HTTP Request"
	}
	*u = collectorURL(parsed.String())
	return nil
}

// isCollector reports whether a URL consists of http or https, a host, and perhaps a path.
func isCollector(u *url.URL) bool {
	if u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	return u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// Off reports whether no traces are sent.
func (u collectorURL) Off() bool { return u == "" || u == "off" }

func (h *headerValues) UnmarshalText(text []byte) error {
	*h = split(string(text))
	for _, pair := range *h {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return errors.New("needs NAME=VALUE, such as Authorization=Bearer abc, separated by commas")
		}
	}
	return nil
}

// Map returns the headers by name.
func (h headerValues) Map() map[string]string {
	all := make(map[string]string, len(h))
	for _, pair := range h {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return all
}

func (n *percent) UnmarshalText(text []byte) error { return parseNumber(n, text, 1, 100, "") }
