package truststore

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A database is an NSS store. Chromium and Firefox use such stores, and certutil changes them. Each
// certificate in it has a nickname. Certificates with the same subject may share a nickname.
type database struct {
	c    Config
	who  account
	kind Kind
	dir  string
}

func (d database) place() Place { return Place{Kind: d.kind, Path: d.dir} }

func (d database) exists() bool {
	_, err := os.Stat(filepath.Join(d.dir, "cert9.db"))
	return err == nil
}

// certutil runs certutil on the database. The command must not need a password, because certutil
// would prompt for it at the terminal.
func (d database) certutil(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	if err := hasCertutil(); err != nil {
		return nil, err
	}
	return d.who.run(ctx, stdin, "certutil", append(args, "-d", "sql:"+d.dir)...)
}

// hasCertutil returns an error if certutil is not installed.
func hasCertutil() error {
	if _, err := exec.LookPath("certutil"); err != nil {
		return missing("certutil", "libnss3-tools")
	}
	return nil
}

// A named certificate is a certificate in a database.
type named struct {
	*x509.Certificate
	nickname string
	trusted  bool // whether it is trusted as an authority for servers
}

// list returns the certificates in the database.
func (d database) list(ctx context.Context) (all []named, err error) {
	if !d.exists() {
		return nil, nil
	}

	table, err := d.certutil(ctx, nil, "-L")
	if err != nil {
		return nil, err
	}

	for line := range strings.Lines(string(table)) {
		nickname, flags, ok := cutLast(strings.TrimSpace(line))
		if !ok || strings.Count(flags, ",") != 2 || strings.HasPrefix(flags, "SSL,") {
			continue // the header of the table
		}

		text, err := d.certutil(ctx, nil, "-L", "-a", "-n", nickname)
		if err != nil {
			if nickname == d.c.Name {
				return nil, err
			}
			continue // the error matters only for the authority's certificates
		}
		forServers, _, _ := strings.Cut(flags, ",")
		for _, cert := range parse(text) {
			all = append(all, named{
				Certificate: cert,
				nickname:    nickname,
				trusted:     strings.Contains(forServers, "C"),
			})
		}
	}
	return all, nil
}

// cutLast splits a line of the table into the nickname and the trust flags at its end.
func cutLast(line string) (nickname, flags string, ok bool) {
	i := strings.LastIndexAny(line, " \t")
	if i < 0 {
		return "", "", false
	}
	return strings.TrimSpace(line[:i]), line[i+1:], true
}

// state implements store.
func (d database) state(ctx context.Context) (State, error) {
	all, err := d.list(ctx)
	if err != nil {
		return Unknown, err
	}
	var held []*x509.Certificate
	for _, n := range all {
		held = append(held, n.Certificate)
	}
	return d.c.stateOf(held, func(cert *x509.Certificate) bool {
		return slices.ContainsFunc(all, func(n named) bool { return n.Equal(cert) && n.trusted })
	}), nil
}

// add replaces all certificates with the authority's name. If the database is missing, add creates
// it with an empty password, as browsers do.
func (d database) add(ctx context.Context) error {
	if err := hasCertutil(); err != nil {
		return err
	}
	if err := d.remove(ctx); err != nil {
		return err
	}

	if !d.exists() {
		if _, err := d.who.run(ctx, nil, "mkdir", "-p", d.dir); err != nil {
			return err
		}
		if _, err := d.certutil(ctx, nil, "-N", "--empty-password"); err != nil {
			return err
		}
	}

	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.c.Cert.Raw})
	_, err := d.certutil(ctx, text, "-A", "-a", "-n", d.c.Name, "-t", "C,,", "-f", os.DevNull)
	if err == nil {
		return nil
	}

	if strings.Contains(err.Error(), "SEC_ERROR_BAD_PASSWORD") {
		err = errors.New(
			"it is protected by a password: import ca.pem in the browser's settings, which ask for it")
	}
	return errors.Join(err, d.remove(ctx)) // the certificate may have been added without trust
}

// remove deletes the certificates with the authority's name. certutil deletes by nickname, which
// several certificates can share, so remove lists them again after each deletion.
func (d database) remove(ctx context.Context) error {
	const maxDeletions = 100 // more than a store ever has with this name
	for range maxDeletions {
		all, err := d.list(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(n named) bool { return d.c.same(n.Certificate) })
		if i < 0 {
			return nil
		}
		if _, err := d.certutil(ctx, nil, "-D", "-n", all[i].nickname); err != nil {
			return err
		}
	}
	return fmt.Errorf("certificates named %q reappear when they are deleted", d.c.Name)
}
