package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// check returns an error that lists invalid values, and values that contradict each other.
func (c Config) check(from Origins) error {
	return errors.Join(
		c.checkListeners(from),
		c.checkURLPasswords(from),
		c.checkKeys(from),
		c.checkServices(from),
		c.checkTLS(from),
		c.checkClientCertificates(from),
		c.checkOffload(from),
		c.checkBucket(from),
		c.checkBootstrap(from),
		c.checkBackup(from),
		c.checkScripts(from),
	)
}

// HasCertificates reports whether requests may have client certificates.
func (c Config) HasCertificates() bool { return c.ListenMTLS != Off || c.ClientCertHeader != "" }

// checkClientCertificates rejects settings for client certificates if no request can have one.
func (c Config) checkClientCertificates(from Origins) error {
	var errs []error
	if c.ClientCertHeader != "" && len(c.TrustedProxies) == 0 {
		errs = append(errs, from.errorf("client_cert_header",
			"needs trusted_proxies: the networks of the proxies that send the header"))
	}
	if c.MTLSURL != "" && !c.HasCertificates() {
		errs = append(errs, from.errorf("mtls_url", "needs listen_mtls, or client_cert_header behind a proxy"))
	}
	if c.MTLSURL != "" && !strings.HasPrefix(string(c.MTLSURL), "https:") {
		errs = append(errs, from.errorf("mtls_url", "needs https://; plain HTTP has no certificates"))
	}
	if c.TLS.ClientCA != "" && !c.HasCertificates() {
		errs = append(errs, from.errorf("tls.client_ca", "needs listen_mtls, or client_cert_header behind a proxy"))
	}
	return errors.Join(errs...)
}

// checkBackup rejects a directory for backups that this node cannot write.
func (c Config) checkBackup(from Origins) error {
	switch {
	case c.Backup.Directory == "":
		return nil
	case len(c.Backup.Recipients) == 0:
		return from.errorf("backup.directory", "needs backup.recipients, for whom backups are encrypted; "+
			"`selvage backup key FILE` creates a key")
	case !c.Services.Has(Recordings):
		return from.errorf("backup.directory", "needs a node that serves recordings")
	}
	return nil
}

// checkListeners rejects addresses that have no port, and addresses that collide.
func (c Config) checkListeners(from Origins) error {
	var errs []error
	reject := func(path string, got HostPort, unfit ...HostPort) {
		if slices.Contains(unfit, got) && from.set(path) {
			errs = append(errs, from.errorf(path, "%s; it is %q", needsHostPort, got))
		}
	}

	reject("listen", c.Listen, "", Off, Auto)
	reject("listen_tls", c.ListenTLS, "")
	reject("listen_mtls", c.ListenMTLS, "", Auto)
	reject("listen_ops", c.ListenOps, "", Auto)
	reject("listen_media", c.ListenMedia, "")
	reject("listen_turn", c.ListenTURN, "", Auto)
	reject("listen_sip", c.ListenSIP, "", Auto)
	reject("listen_sips", c.ListenSIPS, "", Auto)
	reject("fabric_host", c.FabricHost, Off, Auto)

	pairs := []struct {
		path, other           string
		address, otherAddress HostPort
	}{
		{"listen_tls", "listen", c.TLSAddress(), c.Listen},
		{"listen_mtls", "listen", c.ListenMTLS, c.Listen},
		{"listen_mtls", "listen_tls", c.ListenMTLS, c.TLSAddress()},
		{"listen_mtls", "listen_ops", c.ListenMTLS, c.ListenOps},
		{"listen_mtls", "listen_media", c.ListenMTLS, c.MediaListener()},
		{"listen_mtls", "listen_turn", c.ListenMTLS, c.ListenTURN},
		{"listen_mtls", "listen_sip", c.ListenMTLS, c.ListenSIP},
		{"listen_ops", "listen", c.ListenOps, c.Listen},
		{"listen_ops", "listen_tls", c.ListenOps, c.TLSAddress()},
		{"listen_media", "listen", c.MediaListener(), c.Listen},
		{"listen_media", "listen_tls", c.MediaListener(), c.TLSAddress()},
		{"listen_media", "listen_ops", c.MediaListener(), c.ListenOps},
		{"listen_turn", "listen", c.ListenTURN, c.Listen},
		{"listen_turn", "listen_tls", c.ListenTURN, c.TLSAddress()},
		{"listen_turn", "listen_ops", c.ListenTURN, c.ListenOps},
		{"listen_turn", "listen_media", c.ListenTURN, c.MediaListener()},
		{"listen_sip", "listen", c.ListenSIP, c.Listen},
		{"listen_sip", "listen_tls", c.ListenSIP, c.TLSAddress()},
		{"listen_sip", "listen_ops", c.ListenSIP, c.ListenOps},
		{"listen_sip", "listen_media", c.ListenSIP, c.MediaListener()},
		{"listen_sip", "listen_turn", c.ListenSIP, c.ListenTURN},
		{"listen_sips", "listen", c.ListenSIPS, c.Listen},
		{"listen_sips", "listen_tls", c.ListenSIPS, c.TLSAddress()},
		{"listen_sips", "listen_mtls", c.ListenSIPS, c.ListenMTLS},
		{"listen_sips", "listen_ops", c.ListenSIPS, c.ListenOps},
		{"listen_sips", "listen_media", c.ListenSIPS, c.MediaListener()},
		{"listen_sips", "listen_turn", c.ListenSIPS, c.ListenTURN},
		{"listen_sips", "listen_sip", c.ListenSIPS, c.ListenSIP},
	}
	for _, pair := range pairs {
		if pair.address.collides(pair.otherAddress) {
			errs = append(errs, from.errorf(pair.path,
				"is %s, which %s already uses; choose another port (0 for any free one)",
				pair.address, pair.other))
		}
	}
	return errors.Join(errs...)
}

// collides reports whether two listeners cannot have these addresses at the same time.
func (h HostPort) collides(other HostPort) bool {
	host, port, err := net.SplitHostPort(string(h))
	if err != nil {
		return false
	}
	otherHost, otherPort, err := net.SplitHostPort(string(other))
	if err != nil || port != otherPort || port == "0" {
		return false
	}
	return host == otherHost || isAny(host) || isAny(otherHost)
}

// isAny reports whether a listener with this host listens on all addresses of this machine.
func isAny(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// checkURLPasswords rejects URLs with passwords on the command line, where other users can read
// them.
func (c Config) checkURLPasswords(from Origins) error {
	var errs []error
	urls := []struct{ path, raw string }{
		{"database", string(c.Database)},
		{"sessions", string(c.Sessions)},
	}
	for _, url := range urls {
		if !strings.HasPrefix(from[url.path], "--") || Redact(url.raw) == url.raw {
			continue
		}
		variable := "SELVAGE_" + strings.ToUpper(url.path)
		instead := "set " + variable + " to the URL, or " + variable + "_FILE to the name of a file that holds it"
		if strings.HasPrefix(url.raw, "postgres") {
			instead += ", or leave the password out of the URL and set PGPASSFILE"
		}
		errs = append(errs, from.errorf(url.path,
			"contains a password, and everybody on this machine can read a command line: %s", instead))
	}
	return errors.Join(errs...)
}

// maxSealingRotation ensures that each key encrypts far fewer than 2^32 tokens. With more tokens,
// random nonces would begin to collide (NIST SP 800-38D, section 8.3).
const maxSealingRotation = Period(7 * 24 * time.Hour)

// checkKeys rejects rotation periods so short that a key would sign before it was published, or so long
// that a sealing key would encrypt too many tokens.
func (c Config) checkKeys(from Origins) error {
	var errs []error
	rotations := []struct {
		path     string
		rotation Period
	}{
		{"keys.signing_rotation", c.Keys.SigningRotation},
		{"keys.sealing_rotation", c.Keys.SealingRotation},
	}
	for _, k := range rotations {
		if k.rotation < c.Keys.Publish {
			errs = append(errs, from.errorf(k.path, "is %s, but keys are published for %s before they sign "+
				"(keys.publish): make the rotation longer or keys.publish shorter", k.rotation, c.Keys.Publish))
		}
	}

	if c.Keys.SealingRotation > maxSealingRotation {
		errs = append(errs, from.errorf("keys.sealing_rotation",
			"needs a time up to %s, or one key would encrypt too many tokens; it is %s",
			maxSealingRotation, c.Keys.SealingRotation))
	}
	return errors.Join(errs...)
}

// checkServices rejects a node that serves only some of the services, but keeps its data where no
// other node can reach it, because no node could then serve the other services.
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

	return from.errorf("services", "leaves out %s, but only this node can use %s: serve everything, "+
		"or share the data with other nodes: set --database to PostgreSQL, "+
		"and --sessions to PostgreSQL or Redis",
		strings.Join(c.Services.missing(), " and "), strings.Join(embedded, " and "))
}

// checkTLS rejects more than one source of the certificate, and an incomplete source.
func (c Config) checkTLS(from Origins) error {
	var errs []error
	reject := func(path, format string, args ...any) {
		errs = append(errs, from.errorf(path, format, args...))
	}
	switch {
	case c.TLS.Cert == "" && c.TLS.Key != "":
		reject("tls.key", "is set and tls.cert is not: set tls.cert to the file of the certificate")
	case c.TLS.Key == "" && c.TLS.Cert != "":
		reject("tls.cert", "is set and tls.key is not: set tls.key to the file of the private key")
	}

	acme := c.TLS.ACME
	if len(acme.Hosts) == 0 {
		unused := map[string]bool{
			"tls.acme.accept_terms": acme.AcceptTerms,
			"tls.acme.email":        acme.Email != "",
			"tls.acme.ca":           acme.CA != "",
		}
		for path, set := range unused {
			if set {
				reject(path, "is set and tls.acme.hosts is not: list the names to request certificates for")
			}
		}
		return errors.Join(errs...)
	}

	if c.TLS.Cert != "" || c.TLS.Key != "" {
		reject("tls.acme.hosts", "is set and so are files (tls.cert, tls.key): use one or the other")
	}
	if !acme.AcceptTerms {
		reject("tls.acme.hosts", "needs tls.acme.accept_terms: true; "+
			"read the terms of service of the authority at %s first", acme.Directory)
	}
	for _, host := range c.SecureHosts() {
		if !slices.Contains(acme.Hosts, host) {
			reject("tls.acme.hosts", "does not list %s, at which clients reach this server", host)
		}
	}
	return errors.Join(errs...)
}

// checkOffload rejects a prefix that no proxy could use.
func (c Config) checkOffload(from Origins) error {
	const path = "recordings.offload_prefix"
	prefix := c.Recordings.OffloadPrefix
	switch {
	case prefix == "":
		return nil
	case c.Recordings.Offload == offloadOff:
		return from.errorf(path, "needs recordings.offload: set that to the header of your proxy")
	case !strings.HasPrefix(prefix, "/") || strings.ContainsAny(prefix, " ?#%\r\n"):
		return from.errorf(path, "needs an absolute path, such as /selvage-media/; it is %q", prefix)
	}
	return nil
}

// checkBucket rejects settings that do not work with the configured storage of media, or with its
// encryption.
func (c Config) checkBucket(from Origins) error {
	var errs []error
	reject := func(path, format string, args ...any) {
		errs = append(errs, from.errorf(path, format, args...))
	}
	isOffloaded := c.Recordings.Offload != offloadOff

	switch {
	case c.Media.Shared() && isOffloaded:
		reject("recordings.offload", "needs media in a directory: a proxy cannot send files of an object store; "+
			"set s3.serve to redirect")
	case c.Recordings.Encrypt && isOffloaded:
		reject("recordings.offload", "needs recordings.encrypt to be off: a proxy cannot decrypt files")
	}

	if !c.Media.Shared() {
		if c.S3.Serve != ServeStream {
			reject("s3.serve", "needs media in an object store: set media to s3://BUCKET")
		}
		return errors.Join(errs...)
	}

	switch {
	case c.S3.AccessKey == "" && c.S3.SecretKey != "":
		reject("s3.secret_key", "needs s3.access_key: set both or neither")
	case c.S3.SecretKey == "" && c.S3.AccessKey != "":
		reject("s3.access_key", "needs s3.secret_key: set both or neither")
	}
	if c.S3.PublicURL != "" {
		place, err := c.Media.Bucket()
		switch {
		case c.S3.Serve != ServeRedirect:
			reject("s3.public_url", "needs s3.serve to be redirect: otherwise clients do not reach the store")
		case err == nil && place.Region == "":
			reject("s3.public_url", "needs the region in media, such as s3://BUCKET?region=us-east-1: "+
				"this server cannot look the region up at that URL")
		}
	}
	if c.S3.Serve == ServeRedirect && c.Recordings.Encrypt {
		reject("s3.serve", "needs recordings.encrypt to be off: the object store cannot decrypt files")
	}
	return errors.Join(errs...)
}

// checkBootstrap reports problems with the settings of the first operator, before anything is
// written. It accepts a setting with an empty value, because the file that holds the value may have been
// emptied after the first start.
func (c Config) checkBootstrap(from Origins) error {
	var errs []error
	reject := func(path, format string, args ...any) {
		errs = append(errs, from.errorf(path, format, args...))
	}

	email, secret, token := c.BootstrapAdminEmail, c.BootstrapAdminPassword, c.BootstrapAdminAPIToken
	switch {
	case email == "" && secret == "" && token == "":
		return nil
	case email == "" && from.set("bootstrap_admin_email"):
	case email == "":
		reject("bootstrap_admin_email", "is needed if bootstrap_admin_password or bootstrap_admin_api_token is set")
	case fabric.CheckEmail("email", email) != nil:
		reject("bootstrap_admin_email", "needs an email address")
	}

	isEmptied := secret == "" && from.set("bootstrap_admin_password")
	if p := problem.First(operator.CheckPassword(secret, email)); p != nil && !isEmptied {
		reject("bootstrap_admin_password", "cannot be used: %s", p.Message)
	}
	if token != "" && fabric.CheckSecret("key", token) != nil {
		reject("bootstrap_admin_api_token",
			"needs PT and 64 hexadecimal digits in lower case, as printed by `echo PT$(openssl rand -hex 32)`")
	}
	return errors.Join(errs...)
}

// Warnings lists settings that are allowed but rarely intended.
func (c Config) Warnings() (all []string) {
	if !c.Listen.Loopback() && c.PublicURL == "" {
		all = append(all, "links will lead to this machine only; set --public-url to the URL at which clients reach it")
	}
	if !c.Services.All() && (c.PublicURL == "" || c.AuthURL == "") {
		all = append(all, "this node serves some of the services; set --public-url and --auth-url to the same values "+
			"on all nodes, or nodes will reject each other's tokens")
	}
	if c.Database.Shared() && !c.Sessions.Shared() {
		all = append(all, "sessions are stored on this node only; "+
			"if there are other nodes, set --sessions to the URL of the database or of Redis")
	}
	return all
}
