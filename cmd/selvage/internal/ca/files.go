package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/selvage/selvage/internal/durable"
)

// readKey returns the key in a file, and creates it if the file does not exist.
func readKey(file string) (*ecdsa.PrivateKey, error) {
	der, err := readPEM(file, "PRIVATE KEY")
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(file)
	}
	if err != nil {
		return nil, err
	}

	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}

	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("reading %s: the key is a %T, not an ECDSA key", file, key)
	}
	return ec, nil
}

// makeKey creates a key and writes it to a file. If another process creates the file first,
// it returns that process's key.
func makeKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("creating key: %w", err)
	}
	err = writePEM(file, "PRIVATE KEY", der, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return readKey(file) // another process created it first
	}
	if err != nil {
		return nil, err
	}
	return key, nil
}

// readCert returns the certificate in a directory, and creates one if there is none. Processes that
// create certificates at the same time use the same key, so each of these certificates works.
func (a *Authority) readCert(dir string) (*x509.Certificate, error) {
	cert, err := Read(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return cert, err
	}
	der, err := a.authority()
	if err != nil {
		return nil, err
	}
	err = writePEM(filepath.Join(dir, CertFile), "CERTIFICATE", der, 0o644)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return Read(dir) // another process may have created it first
}

// Read returns the certificate of the authority in a directory. It returns fs.ErrNotExist if
// there is none.
func Read(dir string) (*x509.Certificate, error) {
	file := filepath.Join(dir, CertFile)
	der, err := readPEM(file, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return cert, nil
}

// readPEM returns the content of the first PEM block in a file. The block must have the type kind.
func readPEM(file, kind string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading certificate authority: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf(
			"reading %s: the file has no %s; restore it, or delete %s and %s to create new ones",
			file, kind, CertFile, KeyFile)
	}
	return block.Bytes, nil
}

// writePEM creates a file atomically. It returns fs.ErrExist if the file exists.
func writePEM(file, kind string, der []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".ca-*")
	if err != nil {
		return fmt.Errorf("writing certificate authority: %w", err)
	}
	defer os.Remove(f.Name())
	err = pem.Encode(f, &pem.Block{Type: kind, Bytes: der})
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return fmt.Errorf("writing certificate authority: %w", err)
	}
	err = os.Link(f.Name(), file)
	if err == nil {
		err = durable.SyncDir(filepath.Dir(file))
	}
	if err != nil {
		return fmt.Errorf("writing certificate authority: %w", err)
	}
	return nil
}
