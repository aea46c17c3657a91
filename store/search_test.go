package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/store"
)

// TestSearchSubscribers shows that subscribers are found only by the beginnings of their names and
// identifiers.
func TestSearchSubscribers(t *testing.T) { store.EachDatabase(t, testSearchSubscribers) }

func testSearchSubscribers(t *testing.T, c store.Config) {
	ctx := context.Background()
	s, one := fabricRows(t, c)
	two := newProject(t, s)
	for i, who := range []struct {
		of                              fabric.Project
		mail, ref, first, last, display string
	}{
		{one, "ada@example.com", "r_1", "Ada", "Lovelace", "Countess"},
		{one, "", "R%2", "", "", "Émile de la Tour"},
		{one, "bob@example.com", "", "", "van der Berg", "Bob Adams"},
		{one, "émil@example.com", "", "ŽOFIE", "", " Dana  Ek "},
		{two, "ada@example.com", "r_1", "Ada", "Lovelace", "Ada Lovelace"},
	} {
		sub, a := subscriber(who.of, who.mail, who.ref, fmt.Sprintf("name-%d", i))
		sub.FirstName, sub.LastName, sub.DisplayName = who.first, who.last, who.display
		if err := s.CreateSubscriber(ctx, sub, a); err != nil {
			t.Fatal(err)
		}
	}

	for text, want := range map[string]int{
		"ADA": 2, "ada@": 1, "ada@example.com": 1, "example.com": 3, "exam": 3, "xample": 0,
		"@example.com": 0, "ada example.com": 2, "b": 1, "r_": 1, "r%": 1, "R%2": 1,
		"%": 0, "_": 0, "countess": 1, "nobody": 0, "": 4,
		"ada lov": 1, "lovelace ada": 1, "lov ada": 1, "ada r_1 count": 1, "ada adams": 1, "ada nobody": 0,
		"ada bob": 1, "adams berg": 0, "van der b": 1, "berg": 0,
		"émile": 1, "ÉMILE": 1, "ÉMI": 2, "tour": 1, "de": 0, "émile tour": 1, "žofie": 1, "Žofie": 1,
		"zofie": 0, "dana": 0, "dana ek": 0, "'": 0, `\`: 0,
		"ada ada ada ada ada ada": 0,
	} {
		found, err := s.SearchSubscribers(ctx, one.ID, text, page.Query{Size: crowd})
		if err != nil || len(found.Items) != want || found.Next != "" {
			t.Errorf("SearchSubscribers(%q) = %d rows, %v, want %d", text, len(found.Items), err, want)
		}
	}

	for _, long := range []string{strings.Repeat("_", 30_000), strings.Repeat("é", 30_000),
		strings.Repeat("é", 255)} {
		if found, err := s.SearchSubscribers(ctx, one.ID, long, page.Query{Size: crowd}); err != nil ||
			len(found.Items) != 0 {
			t.Errorf("subscribers with a text of %d bytes: %d rows, %v, want none", len(long), len(found.Items), err)
		}
		if found, err := s.ListAddresses(ctx, one.ID, fabric.AddressFilter{DisplayName: long},
			page.Query{Size: crowd}); err != nil || len(found.Items) != 0 {
			t.Errorf("addresses with a text of %d bytes: %d rows, %v, want none", len(long), len(found.Items), err)
		}
	}

	for _, from := range []string{"x", newID() + ".0", newID() + ".99", newID(), ".1", "." + newID()} {
		found, err := s.SearchSubscribers(ctx, one.ID, "ada", page.Query{Size: crowd, From: from})
		if err != nil || len(found.Items) != 2 || found.Prev != "" {
			t.Errorf("from %q: %+v, %v, want the first page", from, found, err)
		}
	}
}

// TestSearchSharedHost shows that many people with the same host hide neither a reference nor a name.
func TestSearchSharedHost(t *testing.T) { store.EachDatabase(t, testSearchSharedHost) }

func testSearchSharedHost(t *testing.T, c store.Config) {
	ctx := context.Background()
	s, p := fabricRows(t, c)
	add := func(n int, mail, ref, first string) {
		t.Helper()
		sub, a := subscriber(p, mail, ref, fmt.Sprintf("name-%d", n))
		sub.FirstName = first
		if err := s.CreateSubscriber(ctx, sub, a); err != nil {
			t.Fatal(err)
		}
	}

	const crowd = 510 // more than a search reads for a page
	for i := range crowd {
		add(i, fmt.Sprintf("person-%d@acme.example", i), "", "")
	}
	add(crowd, "", "acme-7", "")
	add(crowd+1, "zoe@acme.example", "zoe", "Zoe")

	for text, want := range map[string]string{"acme": "acme-7", "zoe acme.example": "zoe"} {
		found, err := s.SearchSubscribers(ctx, p.ID, text, page.Query{Size: 10})
		if err != nil || len(found.Items) == 0 || found.Items[0].Reference != want {
			t.Errorf("the first page for %q: %+v, %v, want the reference %s first", text, found.Items, err, want)
		}
	}
}

// TestSearchPages shows that a subscriber who matches in several ways is on only one page, and that
// the pages link to each other.
func TestSearchPages(t *testing.T) { store.EachDatabase(t, testSearchPages) }

func testSearchPages(t *testing.T, c store.Config) {
	ctx := context.Background()
	s, p := fabricRows(t, c)
	for i := range 40 {
		sub, a := subscriber(p, fmt.Sprintf("ada%d@example.com", i%7), fmt.Sprintf("ada-%d", i),
			fmt.Sprintf("name-%d", i))
		sub.FirstName, sub.LastName, sub.DisplayName = []string{"Ada", "", "Bob"}[i%3], []string{"Adams",
			"Ada", ""}[i%3], []string{"Ada", "B Adams", ""}[i%3]
		if i >= 7 {
			sub.Email = ""
		}
		if err := s.CreateSubscriber(ctx, sub, a); err != nil {
			t.Fatal(err)
		}
	}

	for _, text := range []string{"ada", "a", "ada ada", "adams", "b", "ada bob"} {
		whole, err := s.SearchSubscribers(ctx, p.ID, text, page.Query{Size: 100})
		if err != nil || whole.Next != "" || len(whole.Items) == 0 {
			t.Fatalf("%q: %+v, %v, want all rows on one page", text, whole, err)
		}

		ids := make(map[string]bool)
		for _, sub := range whole.Items {
			ids[sub.ID] = true
		}
		if len(ids) != len(whole.Items) {
			t.Errorf("%q: only %d of %d rows differ from each other", text, len(ids), len(whole.Items))
		}

		var there []string
		for q := (page.Query{Size: 3}); ; {
			found, err := s.SearchSubscribers(ctx, p.ID, text, q)
			if err != nil {
				t.Fatal(err)
			}

			for i, sub := range found.Items {
				if want := whole.Items[len(there)+i].ID; sub.ID != want {
					t.Fatalf("%q: %s is at position %d, want %s", text, sub.ID, len(there)+i, want)
				}
			}

			if q.From != "" {
				back, err := s.SearchSubscribers(ctx, p.ID, text, page.Query{Size: 3, From: found.Prev})
				if err != nil || back.Next != q.From || len(back.Items) != 3 ||
					back.Items[0].ID != there[len(there)-3] {
					t.Errorf("%q: the page before %s is %+v, %v", text, q.From, back, err)
				}
			}

			for _, sub := range found.Items {
				there = append(there, sub.ID)
			}
			if q.From = found.Next; q.From == "" {
				break
			}
		}

		if len(there) != len(whole.Items) || slices.Contains(there, "") {
			t.Errorf("%q: %d rows on pages, %d in one query", text, len(there), len(whole.Items))
		}
	}
}
