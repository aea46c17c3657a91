package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// check reports values that are fine elsewhere but not for their key, and those
// that do not go together.
func (c Config) check(from Origins) error {
	return errors.Join(c.checkListeners(from), c.checkPasswords(from), c.checkKeys(from),
		c.checkServices(from), c.checkTLS(from), c.checkOffload(from), c.checkBootstrap(from))
}

func (c Config) checkListeners(from Origins) error {
	var errs []error
	refuse := func(path string, got HostPort, unfit ...HostPort) {
		if slices.Contains(unfit, got) && from.set(path) {
			errs = append(errs, fmt.Errorf("%s %s; it is %q", from.keyAt(path), needsHostPort, got))
		}
	}
	refuse("listen", c.Listen, "", Off, Auto)
	refuse("listen_tls", c.ListenTLS, "")
	refuse("listen_ops", c.ListenOps, "", Auto)
	refuse("fabric_host", c.FabricHost, Off, Auto)
	for _, pair := range []struct {
		path, other string
		a, b        HostPort
	}{
		{"listen_tls", "listen", c.TLSAddress(), c.Listen},
		{"listen_ops", "listen", c.ListenOps, c.Listen},
		{"listen_ops", "listen_tls", c.ListenOps, c.TLSAddress()},
	} {
		if pair.a.meets(pair.b) {
			errs = append(errs, fmt.Errorf(
				"%s is %s, where %s is already; choose another port (0 is any that is free)",
				from.keyAt(pair.path), pair.a, pair.other))
		}
	}
	return errors.Join(errs...)
}

// meets reports whether only one of two addresses can be listened on.
func (h HostPort) meets(other HostPort) bool {
	a, port, err := net.SplitHostPort(string(h))
	b, otherPort, otherErr := net.SplitHostPort(string(other))
	everywhere := func(host string) bool {
		ip := net.ParseIP(host)
		return host == "" || ip != nil && ip.IsUnspecified()
	}
	return err == nil && otherErr == nil && port == otherPort && port != "0" &&
		(a == b || everywhere(a) || everywhere(b))
}

// checkPasswords refuses passwords on the command line.
func (c Config) checkPasswords(from Origins) error {
	var errs []error
	for _, url := range []struct{ path, raw string }{{"database", string(c.Database)},
		{"sessions", string(c.Sessions)}} {
		path, raw := url.path, url.raw
		if !strings.HasPrefix(from[path], "--") || Redact(raw) == raw {
			continue
		}
		instead := fmt.Sprintf("set SELVAGE_%[1]s to the URL, or SELVAGE_%[1]s_FILE to the name of a file that holds it", strings.ToUpper(path))
		if strings.HasPrefix(raw, "postgres") {
			instead += ", or leave the password out of the URL and PGPASSFILE find it"
		}
		errs = append(errs, fmt.Errorf("%s has a password in it, and everybody on this machine can read a command line: %s", from[path], instead))
	}
	return errors.Join(errs...)
}

// longestSealing keeps what one key seals far below 2^32 tokens, where random
// nonces begin to meet (NIST SP 800-38D, section 8.3).
const longestSealing = Period(7 * 24 * time.Hour)

// checkKeys refuses keys that would sign before they were published.
func (c Config) checkKeys(from Origins) error {
	var errs []error
	for _, k := range []struct {
		path     string
		rotation Period
	}{{"keys.signing_rotation", c.Keys.SigningRotation}, {"keys.sealing_rotation", c.Keys.SealingRotation}} {
		if k.rotation < c.Keys.Publish {
			errs = append(errs, fmt.Errorf(
				"%s is %s, and a key must be published for %s before it takes over (keys.publish): make the first longer or the second shorter",
				from.keyAt(k.path), k.rotation, c.Keys.Publish))
		}
	}
	if c.Keys.SealingRotation > longestSealing {
		errs = append(errs, fmt.Errorf("%s needs a time up to %s, or one key would seal too much; it is %s",
			from.keyAt("keys.sealing_rotation"), longestSealing, c.Keys.SealingRotation))
	}
	return errors.Join(errs...)
}

// checkServices refuses to serve a part where nobody could serve the rest.
func (c Config) checkServices(from Origins) error {
	if c.Services.All() {
		return nil
	}
	var embedded []string
	if !c.Database.Shared() {
		embedded = append(embedded, fmt.Sprintf("the database (%s)", c.Database))
	}
	if !c.Sessions.Shared() {
		embedded = append(embedded, fmt.Sprintf("the sessions (%s)", c.Sessions))
	}
	if len(embedded) == 0 {
		return nil
	}
	return fmt.Errorf("%s leaves out %s, but %s can be used by this node alone: serve everything, "+
		"or keep rows in PostgreSQL (--database) and sessions in PostgreSQL or Redis (--sessions), where nodes that serve the rest find them",
		from.keyAt("services"), strings.Join(c.Services.missing(), " and "), strings.Join(embedded, " and "))
}

// Warnings lists what is allowed and rarely meant.
func (c Config) Warnings() (all []string) {
	if !c.Listen.Loopback() && c.PublicURL == "" {
		all = append(all, "links will lead to this machine only; set --public-url to where clients reach it")
	}
	if !c.Services.All() && (c.PublicURL == "" || c.AuthURL == "") {
		all = append(all, "this node serves a part; set --public-url and --auth-url alike on all nodes, or one takes the tokens of another for foreign")
	}
	if c.Database.Shared() && !c.Sessions.Shared() {
		all = append(all, "sessions are kept on this node alone; where there are other nodes, set --sessions to the URL of the database or of Redis")
	}
	return all
}

// checkTLS refuses certificates of two sources, and halves of one.
func (c Config) checkTLS(from Origins) error {
	files, acme := c.TLS.Cert != "" || c.TLS.Key != "", c.TLS.ACME
	var errs []error
	refuse := func(path, format string, args ...any) {
		errs = append(errs, fmt.Errorf(from.keyAt(path)+" "+format, args...))
	}
	switch {
	case c.TLS.Cert == "" && files:
		refuse("tls.key", "is set and tls.cert is not: name the file of its certificate, too")
	case c.TLS.Key == "" && files:
		refuse("tls.cert", "is set and tls.key is not: name the file of its key, too")
	}
	if len(acme.Hosts) == 0 {
		for path, set := range map[string]bool{"tls.acme.accept_terms": acme.AcceptTerms,
			"tls.acme.email": acme.Email != "", "tls.acme.ca": acme.CA != ""} {
			if set {
				refuse(path, "is set and tls.acme.hosts is not: say which names to have certificates for")
			}
		}
		return errors.Join(errs...)
	}
	if files {
		refuse("tls.acme.hosts", "is set and so are files (tls.cert, tls.key): the certificate comes from one or the other")
	}
	if !acme.AcceptTerms {
		refuse("tls.acme.hosts", "needs tls.acme.accept_terms: true, once you have read the terms of service of the authority at %s", acme.Directory)
	}
	for _, host := range c.SecureHosts() {
		if !slices.Contains(acme.Hosts, host) {
			refuse("tls.acme.hosts", "does not have %s, where clients reach this server", host)
		}
	}
	return errors.Join(errs...)
}
