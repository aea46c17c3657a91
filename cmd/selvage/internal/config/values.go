package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/span"
	"github.com/selvage/selvage/internal/suggest"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/operator"
)

// The types of values. Each reads itself from text, and says in its error what
// it would have understood.
type (
	HostPort    string // host:port, or off, or auto
	folderURL   string // dir:FOLDER
	masterKey   string // base64 of 32 bytes, or nothing
	BaseURL     string // http or https, without a path
	texts       []string
	networks    []string // as netip.Prefix writes them
	Services    []string
	connections int
	atMost      int // of something, 0 for none
	size        int64

	passwordLength int
	score          int
	lifetime       time.Duration // of a token: what ends one must be remembered as long
	Period         time.Duration // of a login
	retention      time.Duration // of the audit trail; 0 is for ever
	logLevel       slog.Level
	LogFormat      string
	whoseFactor    string // yes, no, auto, owners or admins
)

// The services that can be served.
const (
	IDP        = "idp"
	Fabric     = "fabric"
	Relay      = "relay"
	Recordings = "recordings"
	Dashboard  = "dashboard"
)

// Off switches a listener Off, Auto chooses its address.
const (
	Off  HostPort = "off"
	Auto HostPort = "auto"
)

func (h *HostPort) UnmarshalText(text []byte) error {
	*h = HostPort(text)
	if *h == "" || *h == Off || *h == Auto {
		return nil
	}
	_, port, err := net.SplitHostPort(string(text))
	if err != nil {
		return errors.New(needsHostPort)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return errors.New("needs a port from 0 to 65535, such as 127.0.0.1:8080 or :8080")
	}
	return nil
}

const needsHostPort = "needs host:port, such as 127.0.0.1:8080 or :8080"

// Loopback reports whether only this machine can reach the address.
func (h HostPort) Loopback() bool {
	host, _, err := net.SplitHostPort(string(h))
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

func (u *folderURL) UnmarshalText(text []byte) error {
	*u = folderURL(text)
	if u.folder() == "" {
		return errors.New("needs dir:FOLDER, such as dir:media or dir:/srv/media; this version knows no other stores")
	}
	return nil
}

// folder returns the FOLDER of dir:FOLDER, "" if it is none.
func (u folderURL) folder() string {
	folder, ok := strings.CutPrefix(string(u), "dir:")
	if !ok {
		return ""
	}
	return folder
}

func (k *masterKey) UnmarshalText(text []byte) error {
	*k = masterKey(text)
	if _, err := keys.ParseMaster(string(text)); err != nil && *k != "" {
		return errors.New("needs the base64 of 32 bytes, such as `openssl rand -base64 32` prints")
	}
	return nil
}

func (u *BaseURL) UnmarshalText(text []byte) error {
	*u = BaseURL(strings.TrimSuffix(string(text), "/"))
	if *u == "" {
		return nil
	}
	p, err := url.Parse(string(*u))
	if err != nil || (p.Scheme != "http" && p.Scheme != "https") || p.Host == "" || p.User != nil ||
		string(*u) != p.Scheme+"://"+p.Host {
		return fmt.Errorf("needs http:// or https:// and a host, such as https://id.example.org, without a path")
	}
	// Issuers and origins are compared as strings, and browsers write them so.
	implied := map[string]string{"http": "80", "https": "443"}[p.Scheme]
	if strings.ToLower(p.Host) != p.Host || p.Port() == implied {
		return fmt.Errorf("needs the host in small letters, without the port that %s implies", p.Scheme)
	}
	return nil
}

func (l *lifetime) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < time.Second || d > idp.MaxAccess {
		return fmt.Errorf("needs a time from 1s to %s, such as 15m or 2h", lifetime(idp.MaxAccess))
	}
	*l = lifetime(d)
	return nil
}

func (p *Period) UnmarshalText(text []byte) error {
	const most = 10 * 365 * 24 * time.Hour
	d, err := time.ParseDuration(string(text))
	if err != nil || d < time.Second || d > most {
		return fmt.Errorf("needs a time from 1s to %s, such as 12h or 720h", Period(most))
	}
	*p = Period(d)
	return nil
}

func (p Period) String() string { return time.Duration(p).String() }

func (l lifetime) String() string { return time.Duration(l).String() }

func (l *texts) UnmarshalText(text []byte) error {
	*l = split(string(text))
	return nil
}

func (n *passwordLength) UnmarshalText(text []byte) error {
	parsed, err := strconv.Atoi(string(text))
	if err != nil || parsed < password.MinLength || parsed > password.MaxLength {
		return fmt.Errorf("needs a number from %d to %d", password.MinLength, password.MaxLength)
	}
	*n = passwordLength(parsed)
	return nil
}

func (n *score) UnmarshalText(text []byte) error {
	parsed, err := strconv.Atoi(string(text))
	if err != nil || parsed < 0 || parsed > 4 {
		return errors.New("needs a number from 0 to 4")
	}
	*n = score(parsed)
	return nil
}

func (n *networks) UnmarshalText(text []byte) error {
	*n = nil
	for _, part := range split(string(text)) {
		prefix, err := netip.ParsePrefix(part)
		if at, single := netip.ParseAddr(part); single == nil {
			prefix, err = at.Prefix(at.BitLen())
		}
		if err != nil || prefix.Masked() != prefix || prefix.Addr().Is4In6() {
			return errors.New("needs networks or addresses, such as 10.0.0.0/8, 2001:db8::/32 or 127.0.0.1")
		}
		*n = append(*n, prefix.String())
	}
	return nil
}

// Prefixes returns the networks; they were read before.
func (n networks) Prefixes() (all []netip.Prefix) {
	for _, text := range n {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func (n *connections) UnmarshalText(text []byte) error {
	const most = 10_000
	parsed, err := strconv.Atoi(string(text))
	if err != nil || parsed < 1 || parsed > most {
		return fmt.Errorf("needs a number from 1 to %d", most)
	}
	*n = connections(parsed)
	return nil
}

func (l *atMost) UnmarshalText(text []byte) error {
	const most = 1_000_000
	parsed, err := strconv.Atoi(string(text))
	if err != nil || parsed < 0 || parsed > most {
		return fmt.Errorf("needs a number up to %d, 0 for no limit", most)
	}
	*l = atMost(parsed)
	return nil
}

// OrNone returns the limit, less than 0 where there is none.
func (l atMost) OrNone() int {
	if l == 0 {
		return -1
	}
	return int(l)
}

func (w *whoseFactor) UnmarshalText(text []byte) error {
	switch *w = whoseFactor(text); *w {
	case "true":
		*w = "yes"
	case "false":
		*w = "no"
	case "yes", "no", "auto", "owners", "admins":
	default:
		return errors.New("needs yes, no, auto, owners or admins")
	}
	return nil
}

// Roles returns the roles that need a second factor, where the server is this machine's alone
// or others reach it.
func (w whoseFactor) Roles(local bool) []operator.Role {
	switch {
	case w == "owners":
		return []operator.Role{operator.Owner}
	case w == "admins":
		return []operator.Role{operator.Owner, operator.Admin}
	case w == "yes", w != "no" && !local:
		return operator.Roles()
	}
	return nil
}

// AllServices are those that there are.
var AllServices = []string{IDP, Fabric, Relay, Recordings, Dashboard}

func (s *Services) UnmarshalText(text []byte) error {
	all := AllServices
	*s = split(string(text))
	for _, name := range *s {
		if !slices.Contains(all, name) {
			return fmt.Errorf("has no service %q%s", name,
				suggest.MeantOr(name, all, "there are "+strings.Join(all, ", ")))
		}
	}
	if len(*s) == 0 {
		return fmt.Errorf("needs at least one of %s", strings.Join(all, ", "))
	}
	return nil
}

func (s Services) Has(name string) bool { return slices.Contains(s, name) }

// missing lists what is not served and is missed by who uses the APIs: the dashboard is
// for operators, who have the command line too.
func (s Services) missing() []string {
	return slices.DeleteFunc(slices.Clone(AllServices), func(name string) bool {
		return s.Has(name) || name == Dashboard
	})
}

// All reports whether everything is served.
func (s Services) All() bool { return len(s.missing()) == 0 }

func split(text string) []string {
	var parts []string
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

func (s *size) UnmarshalText(text []byte) error {
	number, shift := string(text), 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, ok := strings.CutSuffix(number, unit); ok {
			number, shift = strings.TrimSpace(rest), 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > 1<<62>>shift {
		return fmt.Errorf("needs a number of bytes, such as 500MiB or 2GiB")
	}
	*s = size(n << shift)
	return nil
}

func (s size) String() string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if shift := 40 - 10*i; s>>shift > 0 && s>>shift<<shift == s {
			return strconv.FormatInt(int64(s)>>shift, 10) + unit
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

func (l *logLevel) UnmarshalText(text []byte) error {
	if err := (*slog.Level)(l).UnmarshalText(text); err != nil {
		return fmt.Errorf("needs debug, info, warn or error")
	}
	return nil
}

func (l logLevel) String() string { return strings.ToLower(slog.Level(l).String()) }

func (f *LogFormat) UnmarshalText(text []byte) error {
	*f = LogFormat(text)
	if *f != "auto" && *f != "text" && *f != "json" {
		return fmt.Errorf("needs auto, text or json")
	}
	return nil
}

// leastRetention is what of the audit trail is kept in any case.
const leastRetention = 30 * span.Day

func (r *retention) UnmarshalText(text []byte) error {
	s := span.Span{Least: 0, Most: 100 * 365 * span.Day}
	if err := s.Set(string(text)); string(text) != "0" && (err != nil || s.Length < leastRetention) {
		return fmt.Errorf("needs a time from %s to %s, such as 400d, or 0 for ever",
			span.InDays(leastRetention), span.InDays(s.Most))
	}
	*r = retention(s.Length)
	return nil
}

func (r retention) String() string { return span.InDays(time.Duration(r)) }
