package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// one is the project whose lists are read. The id of each row ends with the row's number.
const one = "01900000-0000-7000-8000-000000000000"

// mid is the number of a row in project one that is not hidden.
const mid = 8_032

func idAt(i int) string { return fmt.Sprintf("01900000-0000-7000-8000-%d", 100_000_000_000+i) }

// fill creates n numbered rows in each table. every is the size of a group of rows. The first row of
// each group belongs to project one, and the other rows belong to another project. A quarter of
// project one's subscribers and addresses are hidden. A sixteenth of its addresses are rooms, and a
// sixteenth of its resources are agents.
func fill(t testing.TB, c Config, s *Store, n, every int) {
	t.Helper()
	const (
		id     = `'01900000-0000-7000-8000-' || CAST(100000000000 + i AS TEXT)`
		owner  = `'01900000-0000-7000-8000-' || CAST(100000000000 + i / 100 AS TEXT)`
		hidden = `CASE WHEN k % 4 = 0 THEN 1 ELSE 0 END`
	)

	rows := fmt.Sprintf(`WITH RECURSIVE n (i, k) AS (
		SELECT CAST(0 AS BIGINT), CAST(0 AS BIGINT)
		UNION ALL SELECT i + 1, (i + 1) / %d FROM n WHERE i < %d) `, every, n-1)
	project := fmt.Sprintf(`'01900000-0000-7000-8000-00000000000' || CASE WHEN i = k * %d THEN '0' ELSE '1' END`, every)

	filled(t, c, s,
		rows+`INSERT INTO projects (id, name, record_rate, created, updated)
			SELECT '01900000-0000-7000-8000-00000000000' || CAST(i AS TEXT), 'p', 1, 1, 1 FROM n WHERE i < 2`,
		rows+`INSERT INTO subscribers
				(id, project_id, email, reference, first_name, last_name, display_name, disabled, created, updated)
			SELECT `+id+`, `+project+`, 's' || CAST(i AS TEXT), 'ref-' || CAST(i AS TEXT),
				CASE WHEN k % 8 = 0 THEN 'Ada' ELSE 'F' || CAST(i AS TEXT) END,
				'Love' || CAST(i AS TEXT), 'Countess ' || CAST(i AS TEXT), `+hidden+`, i, i FROM n`,
		rows+`INSERT INTO resources (id, project_id, type, display_name, fields, created, updated)
			SELECT `+id+`, `+project+`, CASE WHEN k % 16 = 1 THEN 'ai_agent' ELSE 'call_flow' END,
				'r', '{}', i, i FROM n`,
		rows+`INSERT INTO addresses (id, project_id, resource_id, type, context, name, display_name, created, hidden)
			SELECT `+id+`, `+project+`, `+id+`, CASE WHEN k % 16 = 1 THEN 'room' ELSE 'subscriber' END, 'private',
				'a' || CAST(100000 + (i * 7919) % 800011 AS TEXT) || '-' || CAST(i AS TEXT),
				'Ada ' || CAST(i AS TEXT), i, `+hidden+` FROM n`,
		rows+`INSERT INTO sip_addresses (id, project_id, resource_id, name, "user", fields, created, updated)
			SELECT `+id+`, `+project+`, `+id+`, 's' || CAST(i AS TEXT), '*', '{}', i, i FROM n`,
		rows+`INSERT INTO sip_credentials (id, project_id, subscriber_id, username, fields, secrets, created, updated)
			SELECT `+id+`, `+project+`, `+owner+`, 's' || CAST(i AS TEXT), '{}', '', i, i FROM n`,
		rows+`INSERT INTO resource_versions (id, project_id, resource_id, number, document_version, fields, created)
			SELECT `+id+`, `+project+`, `+owner+`, i, 1, '{}', i FROM n`,
		`ANALYZE`,
	)
}

// A lister reads one page of a list.
type lister struct {
	name string
	list func(s *Store, q page.Query) (next string, err error)
	// few means that the list is searched by a part of a name, or has few rows in total. PostgreSQL
	// sorts the rows if it expects only a few.
	few    bool
	byName bool // the rows are sorted by name, not by id
}

// lists returns the lists whose pages the tests and benchmarks read.
func lists() (listers []lister) {
	listers = append(listers, addressLists("addresses", fabric.AddressFilter{})...)
	listers = append(listers, addressLists("addresses of a type",
		fabric.AddressFilter{Type: fabric.TypeSubscriber})...)
	listers = append(listers, addressLists("addresses of a rare type",
		fabric.AddressFilter{Type: fabric.TypeRoom})...)
	listers = append(listers, addressLists("addresses with a part of a name",
		fabric.AddressFilter{DisplayName: "ada"})...)
	listers = append(listers, addressLists("addresses of a type with a part of a name",
		fabric.AddressFilter{Type: fabric.TypeSubscriber, DisplayName: "ada"})...)

	for _, text := range []string{"ada", "s", "ref-", "ada love", "love ada", "countess", "nobody", "zoé"} {
		listers = append(listers, searchOf(text))
	}

	ctx := context.Background()
	return append(listers,
		addressList("a resource's addresses", fabric.AddressFilter{ResourceID: idAt(mid)}, false),
		addressList("a guest's addresses", fabric.AddressFilter{IDs: []string{idAt(mid), idAt(mid + 32)}}, true),
		thingList("resources and subscribers", fabric.ThingFilter{}, false),
		thingList("resources and subscribers by a text", fabric.ThingFilter{Text: "ada"}, true),
		thingList("resources of a kind by a text", fabric.ThingFilter{Text: "a", Type: "ai_agent"}, false),
		lister{
			name: "resources of a kind",
			list: func(s *Store, q page.Query) (string, error) {
				return nextOf(s.ListResources(ctx, one, "ai_agent", q))
			},
		},
		lister{
			name: "subscribers",
			list: func(s *Store, q page.Query) (string, error) { return nextOf(s.ListSubscribers(ctx, one, q)) },
		},
		lister{
			name: "SIP addresses",
			list: func(s *Store, q page.Query) (string, error) { return nextOf(s.ListSIPAddresses(ctx, one, q)) },
		},
		lister{
			name: "SIP credentials",
			list: func(s *Store, q page.Query) (string, error) {
				return nextOf(s.ListSIPCredentials(ctx, idAt(mid/100), q))
			},
		},
		lister{
			name: "versions",
			list: func(s *Store, q page.Query) (string, error) {
				return nextOf(s.ListVersions(ctx, idAt(mid/100), q))
			},
		},
	)
}

// nextOf returns where the page after found begins.
func nextOf[T any](found page.Page[T], err error) (string, error) { return found.Next, err }

func addressList(name string, f fabric.AddressFilter, few bool) lister {
	return lister{
		name: name,
		list: func(s *Store, q page.Query) (string, error) {
			return nextOf(s.ListAddresses(context.Background(), one, f, q))
		},
		few:    few,
		byName: f.ByName,
	}
}

// addressLists returns the list of the addresses that match a filter in each of its orders.
func addressLists(name string, f fabric.AddressFilter) (listers []lister) {
	for _, order := range []struct {
		name               string
		byName, descending bool
	}{
		{name: "created_at"},
		{name: "created_at desc", descending: true},
		{name: "name", byName: true},
		{name: "name desc", byName: true, descending: true},
	} {
		f.ByName = order.byName
		f.Descending = order.descending
		listers = append(listers, addressList(name+" by "+order.name, f, f.DisplayName != ""))
	}
	return listers
}

func thingList(name string, f fabric.ThingFilter, few bool) lister {
	return lister{
		name: name,
		list: func(s *Store, q page.Query) (string, error) {
			return nextOf(s.ListThings(context.Background(), one, f, q))
		},
		few: few,
	}
}

// searchOf returns the list of the subscribers that a text finds.
func searchOf(text string) lister {
	return lister{
		name: "subscribers by " + text,
		list: func(s *Store, q page.Query) (string, error) {
			if q.From != "" {
				q.From = foundIn(s, text, q.From)
			}
			return nextOf(s.SearchSubscribers(context.Background(), one, text, q))
		},
	}
}

// foundIn returns the key of a page that begins with the given row, in the results of a search for
// text.
func foundIn(s *Store, text, id string) string {
	sub, err := s.FindSubscriber(context.Background(), one, id)
	if err != nil {
		return ""
	}
	for term, b := range newSearch(text).terms {
		if b.matches(sub) {
			return (&foundSubscriber{sub, term}).String()
		}
	}
	return ""
}
