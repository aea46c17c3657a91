package store_test

import (
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
	ctx := t.Context()
	s, one := fabricRows(t, c)
	two := newProject(t, s)
	for i, who := range []struct {
		project     fabric.Project
		email       string
		reference   string
		first, last string
		displayName string
	}{
		{
			project:     one,
			email:       "ada@example.com",
			reference:   "r_1",
			first:       "Ada",
			last:        "Lovelace",
			displayName: "Countess",
		},
		{project: one, reference: "R%2", displayName: "Émile de la Tour"},
		{project: one, email: "bob@example.com", last: "van der Berg", displayName: "Bob Adams"},
		{project: one, email: "émil@example.com", first: "ŽOFIE", displayName: " Dana  Ek "},
		{
			project:     two,
			email:       "ada@example.com",
			reference:   "r_1",
			first:       "Ada",
			last:        "Lovelace",
			displayName: "Ada Lovelace",
		},
	} {
		sub, a := subscriber(who.project, who.email, who.reference, fmt.Sprintf("name-%d", i))
		sub.FirstName = who.first
		sub.LastName = who.last
		sub.DisplayName = who.displayName
		if err := s.CreateSubscriber(ctx, sub, a); err != nil {
			t.Fatal(err)
		}
	}

	for text, want := range map[string]int{
		"": 4, "nobody": 0,

		// emails and their hosts
		"ada@": 1, "ada@example.com": 1, "example.com": 3, "exam": 3, "xample": 0, "@example.com": 0,
		"ada example.com": 2,

		// references, in which wildcards match literally
		"r_": 1, "r%": 1, "R%2": 1, "%": 0, "_": 0, "'": 0, `\`: 0,

		// names
		"ADA": 2, "b": 1, "countess": 1, "tour": 1, "de": 0, "berg": 0, "van der b": 1, "dana": 0, "dana ek": 0,
		"émile": 1, "ÉMILE": 1, "ÉMI": 2, "žofie": 1, "Žofie": 1, "zofie": 0,

		// several words, in any order
		"ada lov": 1, "lovelace ada": 1, "lov ada": 1, "ada r_1 count": 1, "ada adams": 1, "ada bob": 1,
		"émile tour": 1, "ada nobody": 0, "adams berg": 0, "ada ada ada ada ada ada": 0,
	} {
		found := searchPage(t, s, one.ID, text, page.Query{Size: crowd})
		if n := len(found.Items); n != want {
			t.Errorf("SearchSubscribers(%q) = %d rows, want %d", text, n, want)
		}
		if found.Next != "" {
			t.Errorf("SearchSubscribers(%q) has a second page from %s, want one page", text, found.Next)
		}
	}

	for _, long := range []string{
		strings.Repeat("_", 30_000),
		strings.Repeat("é", 30_000),
		strings.Repeat("é", 255),
	} {
		subscribers := searchPage(t, s, one.ID, long, page.Query{Size: crowd})
		if n := len(subscribers.Items); n != 0 {
			t.Errorf("subscribers with a text of %d bytes: %d rows, want none", len(long), n)
		}

		byName := fabric.AddressFilter{DisplayName: long}
		addresses, err := s.ListAddresses(ctx, one.ID, byName, page.Query{Size: crowd})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(addresses.Items); n != 0 {
			t.Errorf("addresses with a text of %d bytes: %d rows, want none", len(long), n)
		}
	}

	// Keys of pages that do not exist show the first page.
	for _, from := range []string{"x", newID() + ".0", newID() + ".99", newID(), ".1", "." + newID()} {
		found := searchPage(t, s, one.ID, "ada", page.Query{Size: crowd, From: from})
		if n := len(found.Items); n != 2 {
			t.Errorf("from %q: %d rows, want the 2 of the first page", from, n)
		}
		if found.Prev != "" {
			t.Errorf("from %q: there is a previous page from %s, want the first page", from, found.Prev)
		}
	}
}

// searchPage returns a page of the subscribers that SearchSubscribers finds.
func searchPage(
	t *testing.T, s *store.Store, projectID, text string, q page.Query,
) page.Page[fabric.Subscriber] {
	t.Helper()
	found, err := s.SearchSubscribers(t.Context(), projectID, text, q)
	if err != nil {
		t.Fatalf("SearchSubscribers(%q) = %v", text, err)
	}
	return found
}

// TestSearchSharedHost shows that many people with the same host hide neither a reference nor a name.
func TestSearchSharedHost(t *testing.T) { store.EachDatabase(t, testSearchSharedHost) }

func testSearchSharedHost(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, p := fabricRows(t, c)
	add := func(n int, mail, ref, first string) {
		t.Helper()
		sub, a := subscriber(p, mail, ref, fmt.Sprintf("name-%d", n))
		sub.FirstName = first
		if err := s.CreateSubscriber(ctx, sub, a); err != nil {
			t.Fatal(err)
		}
	}

	const acme = 510 // more than a search reads for a page
	for i := range acme {
		add(i, fmt.Sprintf("person-%d@acme.example", i), "", "")
	}
	add(acme, "", "acme-7", "")
	add(acme+1, "zoe@acme.example", "zoe", "Zoe")

	for text, want := range map[string]string{"acme": "acme-7", "zoe acme.example": "zoe"} {
		found := searchPage(t, s, p.ID, text, page.Query{Size: 10})
		if len(found.Items) == 0 {
			t.Fatalf("SearchSubscribers(%q) finds nobody, want %s", text, want)
		}
		if got := found.Items[0].Reference; got != want {
			t.Errorf("SearchSubscribers(%q) finds the reference %q first, want %s", text, got, want)
		}
	}
}

// TestSearchPages shows that a subscriber who matches in several ways is on only one page, and that
// the pages link to each other.
func TestSearchPages(t *testing.T) { store.EachDatabase(t, testSearchPages) }

func testSearchPages(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, p := fabricRows(t, c)
	names := []struct{ first, last, display string }{
		{first: "Ada", last: "Adams", display: "Ada"},
		{first: "", last: "Ada", display: "B Adams"},
		{first: "Bob", last: "", display: ""},
	}
	for i := range 40 {
		email := ""
		if i < 7 {
			email = fmt.Sprintf("ada%d@example.com", i)
		}
		sub, a := subscriber(p, email, fmt.Sprintf("ada-%d", i), fmt.Sprintf("name-%d", i))
		sub.FirstName = names[i%3].first
		sub.LastName = names[i%3].last
		sub.DisplayName = names[i%3].display
		if err := s.CreateSubscriber(ctx, sub, a); err != nil {
			t.Fatal(err)
		}
	}

	for _, text := range []string{"ada", "a", "ada ada", "adams", "b", "ada bob"} {
		whole := searchPage(t, s, p.ID, text, page.Query{Size: 100})
		if whole.Next != "" {
			t.Fatalf("%q: a second page begins with %s, want all rows on one page", text, whole.Next)
		}
		if len(whole.Items) == 0 {
			t.Fatalf("%q: nobody is found, want at least one subscriber", text)
		}

		ids := make(map[string]bool)
		for _, sub := range whole.Items {
			ids[sub.ID] = true
		}
		if len(ids) != len(whole.Items) {
			t.Errorf("%q: only %d of %d rows differ from each other", text, len(ids), len(whole.Items))
		}

		wantSmallPages(t, s, p.ID, text, whole.Items)
	}
}

// wantSmallPages fails the test unless the rows of a search are also on pages of three rows, in the
// same order. It also follows the links from each page to the page before it.
func wantSmallPages(t *testing.T, s *store.Store, projectID, text string, want []fabric.Subscriber) {
	t.Helper()
	var read []string // the ids of the rows on the pages so far
	for q := (page.Query{Size: 3}); ; {
		found := searchPage(t, s, projectID, text, q)
		if q.From != "" {
			wantPageBefore(t, s, projectID, text, q.From, found.Prev, read[len(read)-3])
		}
		for _, sub := range found.Items {
			if len(read) == len(want) {
				t.Fatalf("%q: the pages have more than %d rows", text, len(want))
			}
			if id := want[len(read)].ID; sub.ID != id {
				t.Fatalf("%q: %s is at position %d, want %s", text, sub.ID, len(read), id)
			}
			read = append(read, sub.ID)
		}
		if found.Next == "" {
			break
		}
		q.From = found.Next
	}

	if len(read) != len(want) || slices.Contains(read, "") {
		t.Errorf("%q: the pages have the rows %q, want %d rows", text, read, len(want))
	}
}

// wantPageBefore fails the test unless the page from prev has three rows, the first of them with the
// id first, and leads to next.
func wantPageBefore(t *testing.T, s *store.Store, projectID, text, next, prev, first string) {
	t.Helper()
	before := searchPage(t, s, projectID, text, page.Query{Size: 3, From: prev})
	if before.Next != next {
		t.Errorf("%q: the page after %s is %q, want %s", text, prev, before.Next, next)
	}
	if len(before.Items) != 3 {
		t.Fatalf("%q: the page before %s has %d rows, want 3", text, next, len(before.Items))
	}
	if id := before.Items[0].ID; id != first {
		t.Errorf("%q: the page before %s begins with %s, want %s", text, next, id, first)
	}
}
