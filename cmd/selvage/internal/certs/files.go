package certs

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// FilesConfig names the files of a certificate.
type FilesConfig struct {
	Cert  string           // PEM: the server's certificate, then its intermediates
	Key   string           // PEM: the private key; other users must not be able to read this file
	Hosts []string         // the names for which the certificate must be valid
	Log   *slog.Logger     // nil means slog.Default
	Now   func() time.Time // nil means time.Now
}

// Files is a certificate and its key in two files. The files are read again when they change.
type Files struct {
	c     FilesConfig
	inUse atomic.Pointer[tls.Certificate]

	mu     sync.Mutex
	loaded stamp // stamp of the files when they were last read, whether or not they were valid
	failed bool  // whether the files were not valid when they were last read
}

// OpenFiles reads the files. If the certificate has expired, OpenFiles logs an error and serves it
// anyway, so that the server starts and other listeners work. A valid certificate replaces it as
// soon as it is in the files.
func OpenFiles(c FilesConfig) (*Files, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	f := &Files{c: c}
	err := f.Reload()
	if errors.Is(err, errExpired) {
		c.Log.Error("serving HTTPS with an expired certificate, which clients reject", "error", err)
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// TLS returns the configuration of a listener. It always uses the newest valid certificate.
func (f *Files) TLS() *tls.Config {
	return config(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.inUse.Load(), nil })
}

// Ends returns when the certificate expires.
func (f *Files) Ends() time.Time { return f.inUse.Load().Leaf.NotAfter }

// Reload reads the files now. If they are not valid, the current certificate stays in use. If there
// is no current certificate, Reload also accepts an expired one, and returns errExpired.
func (f *Files) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded = f.stamp() // taken before reading, so that a change during the read is noticed
	pair, err := f.read()
	isFirst := f.inUse.Load() == nil
	if err == nil || isFirst && errors.Is(err, errExpired) {
		f.inUse.Store(pair)
	}
	f.failed = err != nil
	return err
}

// read returns the certificate in the files. Other users must not be able to read the key, the key
// must belong to the certificate, and the certificate must cover all hosts. read also returns an
// expired certificate, with errExpired.
func (f *Files) read() (*tls.Certificate, error) {
	chain, err := os.ReadFile(f.c.Cert)
	if err != nil {
		return nil, fmt.Errorf("reading tls.cert: %w", err)
	}

	info, err := os.Stat(f.c.Key)
	if err != nil {
		return nil, fmt.Errorf("reading tls.key: %w", err)
	}

	mode := info.Mode().Perm()
	if mode&0o077 != 0 {
		return nil, fmt.Errorf("reading tls.key: others can read %s (mode %o); chmod 600 it, "+
			"and replace the key if others have read it", f.c.Key, mode)
	}

	key, err := os.ReadFile(f.c.Key)
	if err != nil {
		return nil, fmt.Errorf("reading tls.key: %w", err)
	}

	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, f.explain(err, chain, key)
	}
	err = check(pair.Leaf, "the certificate in "+f.c.Cert, f.c.Now(), f.c.Hosts)
	if err != nil && !errors.Is(err, errExpired) {
		return nil, err
	}
	return &pair, err
}

// Run reads the files again when they change, until ctx is done. Another program may write the two
// files one after the other, so Run waits until they have stopped changing. Files that were not valid are
// read again even if they have not changed, because they may have become valid, for example if the clock
// of their authority is ahead. Run logs each reload, and warns once a day if the certificate should have
// been renewed.
func (f *Files) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()

	var seen stamp
	var warned, tried time.Time
	for {
		now := f.c.Now()
		if ending(f.inUse.Load().Leaf, now) && now.Sub(warned) >= 24*time.Hour {
			f.c.Log.Warn("the certificate was not renewed in time",
				"file", f.c.Cert, "expires", f.Ends().Format(time.RFC3339))
			warned = now
		}

		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		// Reload the files once they have stopped changing, if they have changed since they were last
		// read, or if they were not valid then.
		last := seen
		seen = f.stamp()
		loaded, failed := f.lastLoaded()
		hasChanged := seen != loaded
		retries := failed && f.c.Now().Sub(tried) >= retryEvery
		if seen != last || !hasChanged && !retries {
			continue
		}

		tried = f.c.Now()
		err := f.Reload()
		if err != nil && hasChanged {
			f.c.Log.Error("reading the changed certificate; the old one stays in use", "error", err)
		}
		if err != nil {
			continue
		}

		f.c.Log.Info("loaded the changed certificate",
			"file", f.c.Cert, "expires", f.Ends().Format(time.RFC3339))
	}
}

const (
	lookEvery  = 5 * time.Second // how often Run checks the files for changes
	retryEvery = time.Minute     // how often Run reads files again that were not valid
)

// lastLoaded returns the stamp of the files when they were last read, and whether they were not valid.
func (f *Files) lastLoaded() (loaded stamp, failed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loaded, f.failed
}

// A stamp identifies a version of the files.
type stamp [2]struct {
	changed time.Time
	size    int64
	mode    os.FileMode
}

// stamp returns the current stamp of the files, following links. A missing file has a zero
// stamp.
func (f *Files) stamp() (s stamp) {
	for i, name := range []string{f.c.Cert, f.c.Key} {
		if info, err := os.Stat(name); err == nil {
			s[i].changed = info.ModTime()
			s[i].size = info.Size()
			s[i].mode = info.Mode()
		}
	}
	return s
}

// explain adds to err how to fix files that are not a valid pair.
func (f *Files) explain(err error, chain, key []byte) error {
	switch {
	case !hasBlock(chain, "CERTIFICATE"):
		return fmt.Errorf("reading tls.cert: %s has no PEM certificate", f.c.Cert)
	case !hasBlock(key, "PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"):
		return fmt.Errorf("reading tls.key: %s has no unencrypted PEM key", f.c.Key)
	}
	return fmt.Errorf("%s and %s do not match (%w): use the key of the first certificate in the file",
		f.c.Cert, f.c.Key, err)
}

// hasBlock reports whether a PEM text has a block of one of the types.
func hasBlock(text []byte, types ...string) bool {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if slices.Contains(types, block.Type) {
			return true
		}
	}
	return false
}
