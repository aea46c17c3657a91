package store

import (
	"slices"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

// A part of a name that few have is looked for in so many addresses a page and in no more, in each
// order, and pages lead to all who have it, and back.
func TestAddressesStop(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		for _, sql := range []string{
			`INSERT INTO projects (id, name, record_rate, created, updated) VALUES ('` + one + `', 'p', 1, 1, 1)`,
			`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
				INSERT INTO addresses (id, project_id, resource_id, type, context, name, display_name, created)
				SELECT '01900000-0000-7000-8000-' || CAST(100000000000 + i AS TEXT), '` + one + `', 'r' || CAST(i AS TEXT), 'room', 'private',
					'a' || CAST((i * 7919) % 800011 AS TEXT), CASE WHEN i % 5500 = 5 THEN 'Big Lobby' ELSE 'Room' END, 0 FROM n`,
		} {
			if err := s.once(t.Context(), audit.None("a test"), func(tx tx) error { _, err := tx.Exec(t.Context(), sql); return err }); err != nil {
				t.Fatal(err)
			}
		}
		for name, f := range map[string]fabric.AddressFilter{
			"by age": {DisplayName: "lobb"}, "newest first": {DisplayName: "lobb", Descending: true},
			"by name": {DisplayName: "LOBB", ByName: true}, "by name, backward": {DisplayName: "lobb", ByName: true, Descending: true},
			"of a type": {DisplayName: "lobb", Type: fabric.TypeRoom, ByName: true},
		} {
			list := func(q page.Query) page.Page[fabric.Address] {
				t.Helper()
				found, err := s.ListAddresses(t.Context(), one, f, q)
				if err != nil {
					t.Fatal(err)
				}
				return found
			}
			var there, back []string
			pages, q := 1, page.Query{Size: 50}
			found := list(q)
			for ; ; found = list(q) {
				for _, a := range found.Items {
					there = append(there, a.ID)
				}
				if found.Next == "" {
					break
				}
				q.From, pages = found.Next, pages+1
			}
			for ; ; found = list(page.Query{Size: 50, From: found.Prev}) {
				for _, a := range slices.Backward(found.Items) {
					back = append(back, a.ID)
				}
				if found.Prev == "" {
					break
				}
			}
			slices.Reverse(back)
			if len(there) != 3 || pages != 3 || !slices.Equal(slices.Compact(back), there) {
				t.Errorf("%s: %v on %d pages, and back %v", name, there, pages, back)
			}
		}
	})
}
