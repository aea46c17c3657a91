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

// OpenRing opens the key ring by the master key: the configuration's, or that of
// the data directory, which is made with the ring. A ring that is there was sealed
// by one that is somewhere, so none is made for it.
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
	case errors.Is(err, keys.ErrMaster) && made: // another node was faster to make a ring
		return nil, errors.Join(noMaster(c), os.Remove(c.MasterFile()))
	case errors.Is(err, keys.ErrMaster):
		return nil, otherMaster(c)
	case err == nil && made && c.Database.Shared():
		log.Warn("made a master key; nodes on the same database each need a copy of this file, or SELVAGE_MASTER_KEY_FILE", "file", c.MasterFile())
	}
	return ring, err
}

// master returns the master key, and whether it has just been made.
func master(ctx context.Context, c config.Config, rows keys.Store) (key []byte, made bool, err error) {
	if c.MasterKey != "" {
		key, err = keys.ParseMaster(string(c.MasterKey))
		return key, false, err
	}
	missing := func() bool { _, err := os.Stat(c.MasterFile()); return errors.Is(err, fs.ErrNotExist) }
	if missing() {
		ring, err := rows.RingKeys(ctx)
		if err != nil {
			return nil, false, err
		}
		// Whoever made the ring made the file first: it may be there by now.
		if made = missing(); made && len(ring) > 0 {
			return nil, false, noMaster(c)
		}
		if err := datadir.Make(c.Data); err != nil {
			return nil, false, err
		}
	}
	key, err = keys.ReadMaster(c.MasterFile())
	return key, made, err
}

// noMaster says what to do where the ring was sealed by a key that is not here,
// otherMaster where another is.
func noMaster(c config.Config) error {
	return fmt.Errorf("there is no %s, and the key ring in the database was sealed by it: %s, or set SELVAGE_MASTER_KEY_FILE to a file that holds it",
		c.MasterFile(), c.MasterKeyAdvice())
}

func otherMaster(c config.Config) error {
	if c.MasterKey != "" {
		return errors.New("the key ring in the database was sealed by another master key than the one of the configuration (master_key): set the one that nodes on this database use")
	}
	return fmt.Errorf("the key ring in the database was sealed by another master key than %s: %s, or set SELVAGE_MASTER_KEY_FILE to a file that holds the right one",
		c.MasterFile(), c.MasterKeyAdvice())
}
