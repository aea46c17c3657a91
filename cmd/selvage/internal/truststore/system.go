package truststore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// These constants describe the system's store on Debian and its derivatives: its directory, the bundle
// that is generated from its files, and the names of our files.
const (
	systemDir    = "/usr/local/share/ca-certificates"
	systemBundle = "/etc/ssl/certs/ca-certificates.crt"
	systemFiles  = "selvage-*.crt"
)

// system is the certificate store of the machine.
type system struct{ c Config }

func hasSystem() bool {
	info, err := os.Stat(systemDir)
	return err == nil && info.IsDir()
}

// place returns the file of the certificate. If this file does not exist, place returns the file of
// an authority with the same name, if there is one.
func (s system) place() Place {
	p := Place{Kind: System, Path: s.file()}
	files, err := s.files()
	if err != nil || files[p.Path] != nil || len(files) == 0 {
		return p
	}
	p.Path = slices.Max(slices.Collect(maps.Keys(files)))
	return p
}

// file returns the file for the certificate. Its name contains part of the certificate's hash.
// Without a certificate, file returns the pattern of all such files.
func (s system) file() string {
	if s.c.Cert == nil {
		return filepath.Join(systemDir, systemFiles)
	}
	sum := sha256.Sum256(s.c.Cert.Raw)
	return filepath.Join(systemDir, fmt.Sprintf("selvage-%x.crt", sum[:4]))
}

// files returns the stored certificates with the authority's name, by file.
func (s system) files() (map[string]*x509.Certificate, error) {
	names, err := filepath.Glob(filepath.Join(systemDir, systemFiles))
	if err != nil {
		return nil, err
	}

	found := make(map[string]*x509.Certificate)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the system's store: %w", err)
		}
		for _, cert := range parse(text) {
			if s.c.same(cert) {
				found[name] = cert
			}
		}
	}

	return found, nil
}

// state implements store. The certificate is trusted if it is in the bundle.
func (s system) state(context.Context) (State, error) {
	files, err := s.files()
	if err != nil {
		return Unknown, err
	}

	bundle, err := os.ReadFile(systemBundle)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Unknown, fmt.Errorf("reading the system's store: %w", err)
	}

	bundled := parse(bundle)
	held := slices.Clone(bundled)
	for _, cert := range files {
		held = append(held, cert)
	}

	return s.c.stateOf(held, func(cert *x509.Certificate) bool {
		return slices.ContainsFunc(bundled, cert.Equal)
	}), nil
}

// add replaces the stored certificates with the authority's name.
func (s system) add(ctx context.Context) error {
	if !hasSystem() {
		return missing("update-ca-certificates", "ca-certificates")
	}
	if os.Geteuid() != 0 {
		return ErrNotRoot
	}
	if err := s.removeFiles(); err != nil {
		return err
	}

	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.c.Cert.Raw})
	if err := os.WriteFile(s.file(), text, 0o644); err != nil {
		return fmt.Errorf("writing the system's store: %w", err)
	}
	if err := os.Chmod(s.file(), 0o644); err != nil { // regardless of the umask
		return fmt.Errorf("writing the system's store: %w", err)
	}

	return s.update(ctx)
}

// remove implements store.
func (s system) remove(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return ErrNotRoot
	}
	if err := s.removeFiles(); err != nil {
		return err
	}
	return s.update(ctx, "--fresh") // --fresh also removes the links of removed certificates
}

// removeFiles deletes the stored certificates with the authority's name.
func (s system) removeFiles() error {
	files, err := s.files()
	if err != nil {
		return err
	}
	var errs []error
	for name := range files {
		errs = append(errs, os.Remove(name))
	}
	return errors.Join(errs...)
}

// update regenerates the bundle and the links next to it. All users must be able to read them,
// regardless of the umask.
func (s system) update(ctx context.Context, args ...string) error {
	if _, err := exec.LookPath("update-ca-certificates"); err != nil {
		return missing("update-ca-certificates", "ca-certificates")
	}
	const script = `umask 022; exec update-ca-certificates "$@"`
	args = append([]string{"-c", script, "sh"}, args...)
	_, err := account{home: "/root"}.run(ctx, nil, "sh", args...)
	return err
}

// parse returns all certificates in a PEM text.
func parse(text []byte) (all []*x509.Certificate) {
	for block, rest := pem.Decode(bytes.TrimSpace(text)); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, cert)
		}
	}
	return all
}
