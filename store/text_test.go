package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
)

// TestMalformedText shows that each database refuses text that only the other one could store.
func TestMalformedText(t *testing.T) { store.EachDatabase(t, testMalformedText) }

func testMalformedText(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	ctx := context.Background()
	malformed := []string{
		"a\x00b",       // NUL, which PostgreSQL cannot store
		"\xff",         // never part of UTF-8
		"caf\xe9",      // Latin-1
		"\xed\xa0\x80", // a surrogate
	}
	for _, text := range malformed {
		_, find := s.FindSubscriberByReference(ctx, p.ID, text)
		_, update := s.UpdateProject(ctx, p.ID, fabric.ProjectChange{Name: &text}, time.Now())
		sub, a := subscriber(p, "", text, "ada")
		_, list := s.ListAddresses(ctx, p.ID, fabric.AddressFilter{DisplayName: text}, page.Query{Size: 1})
		for call, err := range map[string]error{
			"FindSubscriberByReference": find,
			"UpdateProject":             update,
			"CreateSubscriber":          s.CreateSubscriber(ctx, sub, a),
			"ListAddresses":             list,
			"AddConsent":                s.AddConsent(ctx, text, "c", nil, time.Now()),
		} {
			if !errors.Is(err, problem.Malformed) {
				t.Errorf("%s with %q = %v, want problem.Malformed", call, text, err)
			}
		}
	}

	valid := []string{
		"",
		"ä\u0301",    // a second accent, as a combining character
		"\U0010ffff", // the last code point
		"\ufeff",     // a byte order mark
		"\x01\x7f",   // control characters
	}
	for _, text := range valid {
		if _, err := s.UpdateProject(ctx, p.ID, fabric.ProjectChange{Name: &text}, time.Now()); err != nil {
			t.Errorf("UpdateProject(%q) = %v", text, err)
		}
		if got, err := s.FindProject(ctx, p.ID); err != nil || got.Name != text {
			t.Errorf("FindProject = %q, %v, want %q", got.Name, err, text)
		}
	}
}

// TestTextByBytes shows that text is sorted and compared byte by byte, and that LIKE ignores case
// only in A to Z.
func TestTextByBytes(t *testing.T) { store.EachDatabase(t, testTextByBytes) }

func testTextByBytes(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	ctx := context.Background()
	// These are capital letters, digits, combining and precomposed letters, and wildcards.
	names := []string{"-b", "A", "Z", "a", "a-c", "ab", "a\u0301", "ä", "Ä", "ß", "ss", "é", "_", "10", "9", "%"}
	for _, name := range names {
		sub, a := subscriber(p, "", name, name)
		if err := s.CreateSubscriber(ctx, sub, a); err != nil {
			t.Fatalf("CreateSubscriber(%q) = %v", name, err)
		}
	}

	list := func(f fabric.AddressFilter) (found []string) {
		at := ""
		for {
			all, err := s.ListAddresses(ctx, p.ID, f, page.Query{Size: 3, From: at})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range all.Items {
				found = append(found, a.Name)
			}
			if at = all.Next; at == "" {
				return found
			}
		}
	}

	slices.Sort(names) // by bytes
	if got := list(fabric.AddressFilter{ByName: true}); !slices.Equal(got, names) {
		t.Errorf("sorted by name:\n%q, want\n%q", got, names)
	}

	for part, want := range map[string]string{
		// A to Z match in either case.
		"A": "A a a-c ab a\u0301",
		"S": "ss",
		"Z": "Z",
		// Other letters match only themselves.
		"ä": "ä",
		"Ä": "Ä",
		"É": "",
		// Wildcards match literally.
		"_": "_",
		"%": "%",
		`\`: "",
	} {
		got := list(fabric.AddressFilter{ByName: true, DisplayName: part})
		if strings.Join(got, " ") != want {
			t.Errorf("the addresses with %q in their names are %q, want %q", part, got, want)
		}
	}
}
