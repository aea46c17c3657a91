package server

import (
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
// directory. For a new ring it creates a master key. For an existing ring it never does, because
// the master key that encrypts the ring must exist somewhere.
func OpenRing(ctx context.Context, c config.Config, rows *store.Store, log *slog.Logger) (*keys.Ring, error) {
	master, made, err := master(ctx, c, rows)
	if err != nil {
		return nil, err
	}

	chains, err := audit.NewKey(master)
	if err != nil {
		return nil, err
	}
	rows.AuditBy(chains)
	if err := rows.SealAudit(ctx); err != nil {
		return nil, err
	}

	ring, err := keys.Open(ctx, c.RingConfig(rows, master))
	switch {
	case errors.Is(err, keys.ErrMaster) && made: // another node created the ring first
		return nil, errors.Join(noMaster(c), os.Remove(c.MasterFile()))
	case errors.Is(err, keys.ErrMaster):
		return nil, otherMaster(c)
	case err == nil && made && c.Database.Shared():
		log.Warn("created a master key; other nodes on this database need a copy of the file, "+
			"or SELVAGE_MASTER_KEY_FILE", "file", c.MasterFile())
	}
	return ring, err
}

// master returns the master key, and whether it was just created.
func master(ctx context.Context, c config.Config, rows keys.Store) (key []byte, made bool, err error) {
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
		// If another process created the ring, it created this file first, so check again.
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

// noMaster returns the error for a missing master key. otherMaster returns the error for a wrong
// one.
func noMaster(c config.Config) error {
	return fmt.Errorf("%s is missing, and the key ring in the database is encrypted with it: %s, "+
		"or set SELVAGE_MASTER_KEY_FILE to a file that holds it",
		c.MasterFile(), c.MasterKeyAdvice())
}

func otherMaster(c config.Config) error {
	if c.MasterKey != "" {
		return errors.New("the key ring in the database is encrypted with another master key than master_key " +
			"of the configuration: set the one that other nodes on this database use")
	}
	return fmt.Errorf("the key ring in the database is encrypted with another master key than %s: %s, "+
		"or set SELVAGE_MASTER_KEY_FILE to a file that holds the right one",
		c.MasterFile(), c.MasterKeyAdvice())
}
