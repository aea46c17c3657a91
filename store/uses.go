package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
)

// insertUses returns the statement that stores uses. It fails if one of them is already stored.
func insertUses(uses []idp.Use) (query string, args []any) {
	rows := make([]string, len(uses))
	for i, u := range uses {
		rows[i] = "(" + params(len(args), 2) + ")"
		args = append(args, u.Hash, micros(u.Expires))
	}
	return `INSERT INTO used_assertions (hash, expires) VALUES ` + strings.Join(rows, ", "), args
}

// MarkUsed stores uses, all or none. If one of them is already stored, the error is the Refusal of this
// use. Therefore, only one of several callers that store the same use concurrently succeeds.
func (s *Grants) MarkUsed(ctx context.Context, uses ...idp.Use) error {
	err := s.once(ctx, audit.None("marks a use whose result has an event"), func(t tx) error {
		query, args := insertUses(uses)
		_, err := t.Exec(ctx, query, args...)
		return err
	})
	if isUnique(err) {
		if refusal := s.findRefusal(ctx, uses); refusal != nil {
			return refusal
		}
	}
	if err != nil {
		return fmt.Errorf("inserting uses: %w", err)
	}
	return nil
}

// findRefusal returns the Refusal of the first stored use in uses, or nil.
func (s *Grants) findRefusal(ctx context.Context, uses []idp.Use) error {
	for _, u := range uses {
		used, err := s.WasUsed(ctx, u.Hash)
		if err != nil {
			return err
		}
		if used {
			return u.Refusal
		}
	}
	return nil
}

// WasUsed reports whether a use is stored.
func (s *Grants) WasUsed(ctx context.Context, hash string) (bool, error) {
	var found int
	return s.read().findRow(ctx, "use", `SELECT 1 FROM used_assertions WHERE hash = $1`, []any{hash}, &found)
}

var useTable = table[idp.Use]{
	name:    "used_assertions",
	thing:   "use",
	columns: "hash, expires",
	fields:  func(u *idp.Use) []any { return []any{&u.Hash, &u.Expires} },
}

// LiveUses returns the stored uses that have not expired.
func (s *Grants) LiveUses(ctx context.Context) ([]idp.Use, error) {
	return useTable.gather(ctx, s.read(), `WHERE expires >= $1`, micros(s.now()))
}
