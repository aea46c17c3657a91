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
			"oldest first":      {DisplayName: "lobb"},
			"newest first":      {DisplayName: "lobb", Descending: true},
			"by name":           {DisplayName: "LOBB", ByName: true},
			"by name, backward": {DisplayName: "lobb", ByName: true, Descending: true},
			"of a type":         {DisplayName: "lobb", Type: fabric.TypeRoom, ByName: true},
		} {
			t.Run(name, func(t *testing.T) { testAddressesStop(t, s, f) })
		}
	})
}

// testAddressesStop shows that the three addresses that match f are on three pages, both forward and
// backward.
func testAddressesStop(t *testing.T, s *Store, f fabric.AddressFilter) {
	t.Helper()
	list := func(from string) page.Page[fabric.Address] {
		t.Helper()
		found, err := s.ListAddresses(t.Context(), one, f, page.Query{Size: 50, From: from})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}

	var there, back []string
	pages := 1
	found := list("")
	for {
		for _, a := range found.Items {
			there = append(there, a.ID)
		}
		if found.Next == "" {
			break
		}
		found = list(found.Next)
		pages++
	}
	for {
		for _, a := range slices.Backward(found.Items) {
			back = append(back, a.ID)
		}
		if found.Prev == "" {
			break
		}
		found = list(found.Prev)
	}

	if len(there) != 3 {
		t.Errorf("the pages have %q, want 3 addresses", there)
	}
	if pages != 3 {
		t.Errorf("there are %d pages, want 3", pages)
	}
	slices.Reverse(back)
	if back = slices.Compact(back); !slices.Equal(back, there) {
		t.Errorf("the pages have %q backward, want %q", back, there)
	}
}

// TestRecordingsStop shows that a search reads a limited number of recordings per page, even if
// many calls have the prefix and few of them match. The pages together contain all matches.
func TestRecordingsStop(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		manyRecordings(t, c, s, "p", 12_000)
		owner := recordings.Owner{ProjectID: "p"}

		for _, tt := range []struct {
			name   string
			filter recordings.Filter
			want   int // recordings
			pages  int
		}{
			{
				name:   "party",
				filter: recordings.Filter{Owner: owner, CallBegins: "call-", Party: "+1999"},
				want:   0,
				pages:  3,
			},
			{
				name:   "flag",
				filter: recordings.Filter{Owner: owner, CallBegins: "call-", Flag: levels.OneWay},
				want:   10,
				pages:  3,
			},
			{
				name:   "direction",
				filter: recordings.Filter{Owner: owner, CallBegins: "call-", Direction: "outbound"},
				want:   0,
				pages:  3,
			},
			{
				name: "time",
				filter: recordings.Filter{
					Owner:       owner,
					CallBegins:  "call-",
					CreatedFrom: time.UnixMilli(0x019000000001),
				},
				want:  0,
				pages: 3,
			},
			{
				name: "owner",
				filter: recordings.Filter{
					Owner:      recordings.Owner{ProjectID: "p", SubscriberID: "nobody"},
					CallBegins: "call-",
				},
				want:  0,
				pages: 3,
			},
			{
				name:   "direction and flag",
				filter: recordings.Filter{Owner: owner, Direction: "inbound", Flag: levels.OneWay},
				want:   10,
				pages:  3,
			},
		} {
			n, pages := 0, 0
			for q := (page.Query{Size: 50}); pages == 0 || q.From != ""; pages++ {
				found := listRecordings(t, s, tt.filter, q)
				n += len(found.Items)
				q.From = found.Next
			}
			if n != tt.want {
				t.Errorf("%s: %d recordings, want %d", tt.name, n, tt.want)
			}
			if pages != tt.pages {
				t.Errorf("%s: %d pages, want %d", tt.name, pages, tt.pages)
			}
		}
	})
}
