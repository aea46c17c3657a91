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

// TestMalformedText shows that both databases refuse text that only one of them could store.
func TestMalformedText(t *testing.T) { store.EachDatabase(t, testMalformedText) }

func testMalformedText(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	ctx := t.Context()
	malformed := []string{
		"a\x00b",       // NUL, which PostgreSQL cannot store
		"\xff",         // never part of UTF-8
		"caf\xe9",      // Latin-1
		"\xed\xa0\x80", // a surrogate
	}
	for _, text := range malformed {
		sub, address := subscriber(p, "", text, "ada")
		for call, do := range map[string]func() error{
			"FindSubscriberByReference": func() error {
				_, err := s.FindSubscriberByReference(ctx, p.ID, text)
				return err
			},
			"UpdateProject": func() error {
				_, err := s.UpdateProject(ctx, p.ID, fabric.ProjectChange{Name: &text}, time.Now())
				return err
			},
			"CreateSubscriber": func() error { return s.CreateSubscriber(ctx, sub, address) },
			"ListAddresses": func() error {
				byName := fabric.AddressFilter{DisplayName: text}
				_, err := s.ListAddresses(ctx, p.ID, byName, page.Query{Size: 1})
				return err
			},
			"AddConsent": func() error { return s.AddConsent(ctx, text, "c", nil, time.Now()) },
		} {
			err := do()
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
		found, err := s.FindProject(ctx, p.ID)
		if err != nil || found.Name != text {
			t.Errorf("FindProject = %q, %v, want %q", found.Name, err, text)
		}
	}
}

// TestTextByBytes shows that text is sorted and compared byte by byte, and that a search by a part of a
// name ignores case.
func TestTextByBytes(t *testing.T) { store.EachDatabase(t, testTextByBytes) }

func testTextByBytes(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	ctx := t.Context()
	// These are capital letters, digits, combining and precomposed letters, and wildcards.
	names := []string{"-b", "A", "Z", "a", "a-c", "ab", "a\u0301", "ä", "Ä", "ß", "ss", "é", "_", "10", "9", "%"}
	for _, name := range names {
		sub, address := subscriber(p, "", name, name)
		if err := s.CreateSubscriber(ctx, sub, address); err != nil {
			t.Fatalf("CreateSubscriber(%q) = %v", name, err)
		}
	}

	list := func(f fabric.AddressFilter) (found []string) {
		t.Helper()
		addresses, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Address], error) {
			q.Size = 3
			return s.ListAddresses(ctx, p.ID, f, q)
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addresses {
			found = append(found, a.Name)
		}
		return found
	}

	slices.Sort(names) // by bytes
	if got := list(fabric.AddressFilter{ByName: true}); !slices.Equal(got, names) {
		t.Errorf("the addresses sorted by name are\n%q, want\n%q", got, names)
	}

	for part, want := range map[string]string{
		// Letters match in either case.
		"A": "A a a-c ab a\u0301",
		"S": "ss",
		"Z": "Z",
		"ä": "Ä ä",
		"Ä": "Ä ä",
		"É": "é",
		// Other letters match only themselves.
		"ß": "ß",
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
