package store

import (
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
)

// TestAddressesStop shows that a search for a rare part of a name reads a limited number of
// addresses per page, in each order. The pages together contain all matches, both forward and
// backward.
func TestAddressesStop(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := opened(t, c)
		filled(t, c, s,
			`INSERT INTO projects (id, name, record_rate, created, updated) VALUES ('`+one+`', 'p', 1, 1, 1)`,
			`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
				INSERT INTO addresses (id, project_id, resource_id, type, context, name, display_name, created)
				SELECT '01900000-0000-7000-8000-' || CAST(100000000000 + i AS TEXT), '`+
				one+`', 'r' || CAST(i AS TEXT), 'room', 'private',
					'a' || CAST((i * 7919) % 800011 AS TEXT),
					CASE WHEN i % 5500 = 5 THEN 'Big Lobby' ELSE 'Room' END, 0 FROM n`,
		)
		for name, f := range map[string]fabric.AddressFilter{
			"by age":            {DisplayName: "lobb"},
			"newest first":      {DisplayName: "lobb", Descending: true},
			"by name":           {DisplayName: "LOBB", ByName: true},
			"by name, backward": {DisplayName: "lobb", ByName: true, Descending: true},
			"of a type":         {DisplayName: "lobb", Type: fabric.TypeRoom, ByName: true},
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
				t.Errorf("%s: %v on %d pages, backward %v, want 3 on 3 pages both ways", name, there, pages, back)
			}
		}
	})
}

// TestRecordingsStop shows that a search reads a limited number of recordings per page, even if
// many calls have the prefix and few of them match. The pages together contain all matches.
func TestRecordingsStop(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		manyRecordings(t, c, s, "p", 12_000)
		owner := recordings.Owner{ProjectID: "p"}

		for name, l := range map[string]struct {
			filter      recordings.Filter
			want, pages int
		}{
			"party":     {recordings.Filter{Owner: owner, CallBegins: "call-", Party: "+1999"}, 0, 3},
			"flag":      {recordings.Filter{Owner: owner, CallBegins: "call-", Flag: levels.OneWay}, 10, 3},
			"direction": {recordings.Filter{Owner: owner, CallBegins: "call-", Direction: "outbound"}, 0, 3},
			"time": {recordings.Filter{
				Owner:       owner,
				CallBegins:  "call-",
				CreatedFrom: time.UnixMilli(0x019000000001),
			}, 0, 3},
			"tied": {recordings.Filter{Owner: recordings.Owner{ProjectID: "p", SubscriberID: "nobody"},
				CallBegins: "call-"}, 0, 3},
			"both": {recordings.Filter{Owner: owner, Direction: "inbound", Flag: levels.OneWay}, 10, 3},
		} {

			n, pages := 0, 0
			for q := (page.Query{Size: 50}); pages == 0 || q.From != ""; pages++ {
				found, err := s.ListRecordings(t.Context(), l.filter, q)
				if err != nil {
					t.Fatal(err)
				}
				n, q.From = n+len(found.Items), found.Next
			}

			if n != l.want || pages != l.pages {
				t.Errorf("%s: %d on %d pages, want %d on %d", name, n, pages, l.want, l.pages)
			}
		}
	})
}
