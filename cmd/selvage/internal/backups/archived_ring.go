package backups

import (
	"context"

	"github.com/selvage/selvage/internal/backup"
	"github.com/selvage/selvage/keys"
)

// An archivedRing is the key ring of an archive.
type archivedRing struct {
	keys.Store
	records []keys.Record
	masters []keys.MasterRecord
}

func (a archivedRing) MasterKeys(context.Context) ([]keys.MasterRecord, error) { return a.masters, nil }

func (a archivedRing) RingKeys(context.Context) ([]keys.Record, error) { return a.records, nil }
func (a archivedRing) RingVersion(context.Context) (int64, error)      { return 1, nil }

// masterRecord returns the master key in a row of the table master_keys.
func masterRecord(t backup.Table, row []any) (m keys.MasterRecord) {
	for i, c := range t.Columns {
		switch v := row[i].(type) {
		case int64:
			if c.Name == "generation" {
				m.Generation = v
			}
		case string:
			switch c.Name {
			case "fingerprint":
				m.Fingerprint = v
			case "sealed":
				m.Sealed = v
			}
		}
	}
	return m
}

// ringKey returns the key in a row of the table ring.
func ringKey(t backup.Table, row []any) (k keys.Record) {
	for i, c := range t.Columns {
		text, _ := row[i].(string)
		switch c.Name {
		case "kid":
			k.Kid = text
		case "use":
			k.Use = keys.Use(text)
		case "state":
			k.State = keys.State(text)
		case "sealed":
			k.Sealed = text
		}
	}
	return k
}
