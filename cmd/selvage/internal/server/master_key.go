package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
)

// OpenRing opens the key ring with the master key, which is in the configuration or the data
// directory. If there is no master key and no ring, OpenRing creates both. If only the ring exists, OpenRing
// returns an error, because the master key with which it was created must exist somewhere.
func OpenRing(ctx context.Context, c config.Config, rows *store.Store, log *slog.Logger) (*keys.Ring, error) {
	master, made, err := loadMaster(ctx, c, rows)
	if err != nil {
		return nil, err
	}

	masters, err := findMasters(ctx, c, rows, master)
	if errors.Is(err, keys.ErrMaster) {
		return nil, otherMaster(c)
	}
	if err != nil {
		return nil, err
	}
	if err := auditBy(rows, masters); err != nil {
		return nil, err
	}

	var ring *keys.Ring
	rows.OnReplacedMaster(func(ctx context.Context) error {
		if ring == nil {
			return keys.ErrMaster
		}
		return ring.Sync(ctx)
	})
	if err := rows.SealAudit(ctx); err != nil {
		return nil, err
	}

	conf := c.RingConfig(rows, masters.Newest())
	conf.Replaced = func(m keys.Masters) {
		if err := errors.Join(auditBy(rows, m), promoteMaster(c, m)); err != nil {
			log.Error("changing to the new master key", "error", err)
		}
	}

	ring, err = keys.Open(ctx, conf)
	switch {
	case errors.Is(err, keys.ErrMaster) && made: // another node created the ring first
		return nil, errors.Join(noMaster(c), os.Remove(c.MasterFile()))
	case errors.Is(err, keys.ErrMaster):
		return nil, otherMaster(c)
	case err != nil:
		return nil, err
	}

	if err := promoteMaster(c, masters); err != nil {
		return nil, err
	}
	if made && c.Database.Shared() {
		log.Warn("created a master key; other nodes on this database need a copy of the file, "+
			"or SELVAGE_MASTER_KEY_FILE", "file", c.MasterFile())
	}
	return ring, nil
}

// findMasters returns the master keys of the installation. master is the key that was found first.
func findMasters(ctx context.Context, c config.Config, rows keys.Store, master []byte) (keys.Masters, error) {
	more, err := c.MasterKeys()
	if err != nil {
		return keys.Masters{}, err
	}
	return keys.FindMasters(ctx, rows, append([][]byte{master}, more...)...)
}

// auditBy sets the key of the audit trail.
func auditBy(rows *store.Store, m keys.Masters) error {
	chains, err := audit.NewKey(m.Newest(), m.Earlier()...)
	if err != nil {
		return err
	}
	rows.AuditBy(chains)
	return nil
}

// promoteMaster renames the file of the next master key if that key is now in use. It keeps the
// previous file under a name with the fingerprint of its key, because older backups need that key.
// Several processes may call promoteMaster at the same time, because the file of the master key always
// holds one of the two keys.
func promoteMaster(c config.Config, m keys.Masters) error {
	next, err := os.ReadFile(c.NextMasterFile())
	if errors.Is(err, fs.ErrNotExist) || c.MasterKey != "" || c.MasterKeyNext != "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the next master key: %w", err)
	}
	nextKey, err := keys.ParseMaster(string(next))
	if err != nil {
		return err
	}
	if !bytes.Equal(nextKey, m.Newest()) {
		return nil // it is not in use yet
	}

	old, err := keys.ReadMaster(c.MasterFile())
	if err != nil {
		return err
	}
	if bytes.Equal(old, m.Newest()) {
		return nil // another process has renamed the file
	}
	err = os.Link(c.MasterFile(), c.MasterFile()+"."+keys.Fingerprint(old))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("keeping the earlier master key: %w", err)
	}
	err = os.Rename(c.NextMasterFile(), c.MasterFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("renaming the next master key: %w", err)
	}
	return nil
}

// loadMaster returns the master key, and whether it was just created.
func loadMaster(ctx context.Context, c config.Config, rows keys.Store) (key []byte, made bool, err error) {
	if c.MasterKey != "" {
		key, err = keys.ParseMaster(string(c.MasterKey))
		return key, false, err
	}
	missing := func() bool {
		_, err := os.Stat(c.MasterFile())
		return errors.Is(err, fs.ErrNotExist)
	}

	if missing() {
		ring, err := rows.RingKeys(ctx)
		if err != nil {
			return nil, false, err
		}
		// Another process may have created the file and then the ring since the first check, so
		// check again.
		made = missing()
		if made && len(ring) > 0 {
			return nil, false, noMaster(c)
		}
		if err := datadir.Make(c.Data); err != nil {
			return nil, false, err
		}
	}
	key, err = keys.ReadMaster(c.MasterFile())
	return key, made, err
}

// noMaster returns the error for a missing master key.
func noMaster(c config.Config) error {
	return fmt.Errorf("%s is missing, and the key ring in the database is encrypted with it: %s, "+
		"or set SELVAGE_MASTER_KEY_FILE to a file that holds it",
		c.MasterFile(), c.MasterKeyAdvice())
}

// otherMaster returns the error for a master key that does not belong to the key ring.
func otherMaster(c config.Config) error {
	if c.MasterKey != "" {
		return errors.New("the key ring in the database is encrypted with a different master key than master_key " +
			"of the configuration: set the one that other nodes on this database use")
	}
	return fmt.Errorf("the key ring in the database is encrypted with a different master key than %s: %s, "+
		"or set SELVAGE_MASTER_KEY_FILE to a file that holds the right one",
		c.MasterFile(), c.MasterKeyAdvice())
}
