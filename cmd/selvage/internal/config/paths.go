package config

import (
	"path/filepath"
	"time"

	"github.com/selvage/selvage/keys"
)

// masterFile holds the key that seals the key ring.
const masterFile = "master.key"

// MediaDir returns the directory of recordings.
func (c Config) MediaDir() string {
	dir := c.Media.folder()
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(c.Data, dir)
}

// KindsDir returns the directory of an operator's own kinds of resources.
func (c Config) KindsDir() string { return filepath.Join(c.Data, "kinds") }

// MasterFile returns the file of the master key.
func (c Config) MasterFile() string { return filepath.Join(c.Data, masterFile) }

// MasterWhence tells how to get one that is missing.
func (c Config) MasterWhence() string {
	if c.Database.Shared() {
		return "copy it from a node that uses the same database"
	}
	return "put it back from where it is kept"
}

// RingConfig returns what the key ring is opened with.
func (c Config) RingConfig(rows keys.Store, master []byte) keys.Config {
	return keys.Config{
		Store: rows, Master: master,
		SigningRotation: time.Duration(c.Keys.SigningRotation),
		SealingRotation: time.Duration(c.Keys.SealingRotation), Publish: time.Duration(c.Keys.Publish),
	}
}
