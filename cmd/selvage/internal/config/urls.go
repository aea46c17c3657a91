package config

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage/selvage/internal/database"
	letters "github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/session/redis"
	"github.com/selvage/selvage/internal/suggest"
)

// These are the types of URLs, addresses and names.
type (
	HostPort    string // host:port, or off, or auto
	BaseURL     string // http or https, without a path
	DatabaseURL string // sqlite:FILE or postgres://…
	SessionsURL string // sqlite:FILE, postgres://… or redis://… and its variants
	mediaURL    string // dir:FOLDER or s3://BUCKET

	networks     []string // networks as netip.Prefix formats them
	hostNames    []string // DNS names
	directoryURL string   // ACME directory

	mailURL     string // log: or an SMTP server
	mailAddress string // an address, with or without a name, as in a From header
)

// Off disables a listener. Auto chooses its address automatically.
const (
	Off  HostPort = "off"
	Auto HostPort = "auto"
)

const needsHostPort = "needs host:port, such as 127.0.0.1:8080 or :8080"

func (h *HostPort) UnmarshalText(text []byte) error {
	*h = HostPort(text)
	if *h == "" || *h == Off || *h == Auto {
		return nil
	}
	_, port, err := net.SplitHostPort(string(text))
	if err != nil {
		return errors.New(needsHostPort)
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 0 || number > 65535 {
		return errors.New("needs a port from 0 to 65535, such as 127.0.0.1:8080 or :8080")
	}
	return nil
}

// Loopback reports whether only this machine can reach the address.
func (h HostPort) Loopback() bool {
	host, _, err := net.SplitHostPort(string(h))
	if err != nil {
		return false
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func (u *BaseURL) UnmarshalText(text []byte) error {
	*u = BaseURL(strings.TrimSuffix(string(text), "/"))
	if *u == "" {
		return nil
	}

	parsed, err := url.Parse(string(*u))
	if err != nil || !isOrigin(parsed, string(*u)) {
		return errors.New("needs http:// or https:// and a host, such as https://id.example.org, without a path")
	}

	// Issuers and origins are compared as strings, and browsers write them this way.
	implied := impliedPorts[parsed.Scheme]
	if strings.ToLower(parsed.Host) != parsed.Host || parsed.Port() == implied {
		return fmt.Errorf("needs the host in lower case, without the port that %s implies", parsed.Scheme)
	}
	return nil
}

// isOrigin reports whether a URL consists of http or https and a host, without anything else. text
// is the URL before it was parsed.
func isOrigin(u *url.URL, text string) bool {
	if u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	return u.Host != "" && text == u.Scheme+"://"+u.Host
}

func (n *networks) UnmarshalText(text []byte) error {
	*n = nil
	for _, part := range split(string(text)) {
		prefix, err := parseNetwork(part)
		if err != nil || prefix.Masked() != prefix || prefix.Addr().Is4In6() {
			return errors.New("needs networks or addresses, such as 10.0.0.0/8, 2001:db8::/32 or 127.0.0.1")
		}
		*n = append(*n, prefix.String())
	}
	return nil
}

// parseNetwork parses a network, or an address as a network of one address.
func parseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Prefix(address.BitLen())
	}
	return netip.ParsePrefix(text)
}

// Prefixes returns the networks, which UnmarshalText has validated.
func (n networks) Prefixes() (all []netip.Prefix) {
	for _, text := range n {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// certifiable matches names for which authorities issue certificates with ACME. A matching name
// contains a dot, but no wildcard, which would need a proof in DNS.
var certifiable = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

func (h *hostNames) UnmarshalText(text []byte) error {
	*h = split(string(text))
	for _, name := range *h {
		if !certifiable.MatchString(name) || net.ParseIP(name) != nil {
			return fmt.Errorf("needs names such as pbx.example.org, in lower case (xn--… for non-ASCII), "+
				"without * or a port; %q is not one", name)
		}
	}
	return nil
}

func (u *directoryURL) UnmarshalText(text []byte) error {
	*u = directoryURL(text)
	parsed, err := url.Parse(string(text))
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil {
		return errors.New("needs the https:// URL of an ACME directory")
	}
	return nil
}

func (u *mailURL) UnmarshalText(text []byte) error {
	*u = mailURL(text)
	if u.Boxed() {
		return nil
	}
	_, err := letters.ParseURL(string(text))
	return err
}

// Boxed reports whether emails are kept instead of sent.
func (u mailURL) Boxed() bool {
	_, err := letters.ParseURL(string(u))
	return err == letters.ErrBox
}

func (a *mailAddress) UnmarshalText(text []byte) error {
	*a = mailAddress(text)
	if *a == "" {
		return nil
	}
	if _, err := mail.ParseAddress(string(text)); err != nil {
		return errors.New("needs an address such as Acme <no-reply@acme.example>")
	}
	return nil
}

// Parts returns the name and the address, both empty if no address is set.
func (a mailAddress) Parts() (name, address string) {
	parsed, err := mail.ParseAddress(string(a))
	if err != nil {
		return "", "" // UnmarshalText accepts only valid addresses
	}
	return parsed.Name, parsed.Address
}

var (
	databaseSchemes = []string{"sqlite", "postgres", "postgresql"}
	redisSchemes    = []string{
		"redis",
		"rediss",
		"redis-cluster",
		"rediss-cluster",
		"redis-sentinel",
		"rediss-sentinel",
	}
	sessionsSchemes = slices.Concat(databaseSchemes, redisSchemes)
)

// schemeAliases maps the scheme names that other programs use to ours.
var schemeAliases = map[string]string{
	"pg":    "postgres",
	"pgsql": "postgres",
	"pgx":   "postgres",
	"jdbc":  "postgres",

	"sqlite3": "sqlite",
	"file":    "sqlite",

	"valkey":    "redis",
	"valkeys":   "rediss",
	"redis+tls": "rediss",
	"redis+ssl": "rediss",

	"cluster":        "redis-cluster",
	"redis+cluster":  "redis-cluster",
	"rediss+cluster": "rediss-cluster",

	"sentinel":        "redis-sentinel",
	"redis+sentinel":  "redis-sentinel",
	"rediss+sentinel": "rediss-sentinel",
}

func (u *DatabaseURL) UnmarshalText(text []byte) error {
	*u = DatabaseURL(text)
	const needs = "needs sqlite:FILE or postgres://USER@HOST/NAME"
	if slices.Contains(redisSchemes, schemeOf(string(text))) {
		return errors.New(needs + "; Redis can hold sessions, not the database")
	}
	return checkURL(string(text), databaseSchemes, needs)
}

func (u *SessionsURL) UnmarshalText(text []byte) error {
	*u = SessionsURL(text)
	return checkURL(string(text), sessionsSchemes,
		"needs sqlite:FILE, postgres://USER@HOST/NAME, redis://HOST:6379, "+
			"redis-cluster://HOST:6379,HOST:6379 or redis-sentinel://MASTER@HOST:26379,HOST:26379")
}

// Shared reports whether other nodes can use the same database.
func (u DatabaseURL) Shared() bool { return schemeOf(string(u)) != "sqlite" }

// Shared reports whether other nodes can use the same store.
func (u SessionsURL) Shared() bool { return u != "" && schemeOf(string(u)) != "sqlite" }

// Redis reports whether sessions are stored in Redis.
func (u SessionsURL) Redis() bool { return slices.Contains(redisSchemes, schemeOf(string(u))) }

func schemeOf(raw string) string {
	scheme, _, _ := strings.Cut(raw, ":")
	return scheme
}

// checkURL returns an error that describes what is wrong with a URL. needs describes a valid URL.
func checkURL(raw string, schemes []string, needs string) error {
	scheme, rest, ok := strings.Cut(raw, ":")
	switch {
	case !ok || rest == "":
		return errors.New(needs)
	case !slices.Contains(schemes, scheme):
		return errors.New(needs + suggestScheme(strings.ToLower(scheme), schemes))
	case slices.Contains(redisSchemes, scheme):
		return wrapUnusable(redis.Check(raw))
	case scheme != "sqlite" && !strings.HasPrefix(rest, "//"):
		return fmt.Errorf("needs %s:// with two slashes", scheme)
	case scheme != "sqlite":
		return wrapUnusable(database.Check(raw))
	case strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "///"):
		return errors.New("needs sqlite:FILE without slashes before it, " +
			"such as sqlite:selvage.db or sqlite:/srv/selvage.db")
	}
	return nil
}

func wrapUnusable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot be used: %w", err)
}

// suggestScheme suggests the scheme that was probably meant, or returns "".
func suggestScheme(scheme string, schemes []string) string {
	if meant := schemeAliases[scheme]; slices.Contains(schemes, meant) {
		return fmt.Sprintf("; did you mean %q?", meant+":")
	}
	return strings.Replace(suggest.Meant(scheme, schemes), `"?`, `:"?`, 1)
}

// Redact hides the passwords in a URL: the password before its hosts, and passwords among its
// parameters. In a malformed URL it hides too much rather than too little.
func Redact(raw string) string {
	if head, params, ok := strings.Cut(raw, "?"); ok {
		redacted := strings.Split(params, "&")
		for i, param := range redacted {
			name, secret, _ := strings.Cut(param, "=")
			if strings.Contains(strings.ToLower(name), "password") && secret != "" {
				redacted[i] = name + "=" + hidden
			}
		}
		raw = head + "?" + strings.Join(redacted, "&")
	}

	scheme, rest, ok := strings.Cut(raw, "://")
	at := strings.LastIndex(rest, "@")
	if !ok || at < 0 {
		return raw
	}
	user, secret, _ := strings.Cut(rest[:at], ":")
	if secret == "" {
		return raw
	}
	return scheme + "://" + user + ":" + hidden + rest[at:]
}

// hidden replaces passwords, as in net/url.
const hidden = "xxxxx"
