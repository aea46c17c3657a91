package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/selvage/selvage/keys"
)

// masterFile holds the master key, which encrypts the key ring.
const masterFile = "master.key"

// MediaDir returns the directory for recordings, or "" if they are in an object store.
func (c Config) MediaDir() string {
	if c.Media.Shared() {
		return ""
	}
	dir := c.Media.folder()
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(c.Data, dir)
}

// SpoolDir returns the directory for uploads before they are sent to an object store.
func (c Config) SpoolDir() string { return filepath.Join(c.Data, "media-spool") }

// CacheDir returns the directory for copies from an object store.
func (c Config) CacheDir() string { return filepath.Join(c.Data, "media-cache") }

// BackupDir returns the directory for backups, or "" if none is set.
func (c Config) BackupDir() string {
	dir := string(c.Backup.Directory)
	if dir == "" || filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(c.Data, dir)
}

// KindsDir returns the directory for the operator's own kinds of resources.
func (c Config) KindsDir() string { return filepath.Join(c.Data, "kinds") }

// DatabaseFile returns the file of an SQLite database.
func (c Config) DatabaseFile() string {
	file := strings.TrimPrefix(string(c.Database), "sqlite:")
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(c.Data, file)
}

// MasterFile returns the file of the master key.
func (c Config) MasterFile() string { return filepath.Join(c.Data, masterFile) }

// NextMasterFile returns the file of the master key after the next rotation.
func (c Config) NextMasterFile() string { return c.MasterFile() + ".next" }

// MasterKeys returns the master keys that this machine has: first the current one, then the one for
// the next rotation. It returns none if this machine has no key.
func (c Config) MasterKeys() (all [][]byte, err error) {
	current, err := readMaster(c.MasterKey, c.MasterFile())
	if err != nil {
		return nil, err
	}
	next, err := readMaster(c.MasterKeyNext, c.NextMasterFile())
	if err != nil {
		return nil, err
	}
	for _, key := range [][]byte{current, next} {
		if key != nil {
			all = append(all, key)
		}
	}
	return all, nil
}

// readMaster returns the key in text or, if that is empty, in a file. It returns nil if the file does
// not exist.
func readMaster(text masterKey, file string) ([]byte, error) {
	if text != "" {
		return keys.ParseMaster(string(text))
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return keys.ReadMaster(file)
}

// MasterKeyAdvice explains how to restore a missing master key.
func (c Config) MasterKeyAdvice() string {
	if c.Database.Shared() {
		return "copy it from a node that uses the same database"
	}
	return "restore it from your backup"
}

// RingConfig returns the configuration of the key ring.
func (c Config) RingConfig(rows keys.Store, master []byte) keys.Config {
	return keys.Config{
		Store:           rows,
		Master:          master,
		Masters:         c.MasterKeys,
		SigningRotation: time.Duration(c.Keys.SigningRotation),
		SealingRotation: time.Duration(c.Keys.SealingRotation),
		Publish:         time.Duration(c.Keys.Publish),
	}
}
