package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// These are names of files in the data directory.
const (
	RunFile  = "run.json"   // holds the addresses of the running server
	LockFile = "serve.lock" // locked by the running server
)

// Running is the content of run.json.
type Running struct {
	PID       int    `json:"pid"`
	HTTP      string `json:"http,omitempty"`
	HTTPS     string `json:"https,omitempty"`
	MTLS      string `json:"mtls,omitempty"` // HTTPS with client certificates
	Ops       string `json:"ops,omitempty"`
	Media     string `json:"media,omitempty"` // host:port for the media of calls, UDP and TCP
	Probe     string `json:"probe,omitempty"` // secret for tests of the UDP port of Media
	TURN      string `json:"turn,omitempty"`  // the URL for clients
	SIP       string `json:"sip,omitempty"`   // host:port for phones, UDP and TCP
	SIPS      string `json:"sips,omitempty"`  // host:port for phones, TLS
	PublicURL string `json:"public_url"`
	AuthURL   string `json:"auth_url"`
}

// Write replaces run.json atomically.
func (r Running) Write(dir string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("writing %s: %w", RunFile, err)
	}
	return Replace(filepath.Join(dir, RunFile), append(text, '\n'), 0o644)
}

// ReadRunning returns the content of run.json. ok is false if the file is missing or unreadable.
func ReadRunning(dir string) (r Running, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, RunFile))
	if err != nil {
		return Running{}, false
	}
	err = json.Unmarshal(text, &r)
	return r, err == nil
}

// Replace writes a file atomically: readers see either the old content or the new.
func Replace(name string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// Lock makes this process the only server of a data directory, until the file is closed or
// the process ends.
func Lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking data directory: %w%s", err, nameAnother)
	}

	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		who := "another process"
		if r, ok := ReadRunning(dir); ok {
			who = fmt.Sprintf("process %d", r.PID)
		}
		return nil, errors.Join(fmt.Errorf(
			"%s already serves %s: stop it first, or choose another directory with --data", who, dir), f.Close())
	}

	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking data directory: %w", err), f.Close())
	}
	return f, nil
}
