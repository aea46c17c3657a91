package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/store"
)

// People are found by any part of what they are called, and by no more than that.
func TestSearchSubscribers(t *testing.T) { store.EachDatabase(t, testSearchSubscribers) }

func testSearchSubscribers(t *testing.T, c store.Config) {
	ctx := context.Background()
	s, one := fabricRows(t, c)
	two := newProject(t, s)
	for i, who := range []struct {
		of                 fabric.Project
		mail, ref, display string
	}{{one, "ada@example.com", "r_1", "Countess"}, {one, "", "R%2", ""}, {one, "bob@example.com", "", "Bob Adams"}, {two, "ada@example.com", "", ""}} {
		sub, a := subscriber(who.of, who.mail, who.ref, fmt.Sprintf("name-%d", i))
		sub.DisplayName, sub.FirstName, sub.LastName = who.display, "", ""
		if err := s.CreateSubscriber(ctx, sub, a); err != nil {
			t.Fatal(err)
		}
	}
	for part, want := range map[string]int{"ADA": 2, "ada@": 1, "example.com": 2, "r_": 1, "r%": 1, "%": 1, "countess": 1, "nobody": 0, "": 3, "com bob": 0} {
		found, err := s.SearchSubscribers(ctx, one.ID, part, page.Query{Size: crowd})
		if err != nil || len(found.Items) != want {
			t.Errorf("SearchSubscribers(%q) = %d rows, %v, want %d", part, len(found.Items), err, want)
		}
	}
	for _, long := range []string{strings.Repeat("_", 30_000), strings.Repeat("é", 30_000)} {
		if found, err := s.SearchSubscribers(ctx, one.ID, long, page.Query{Size: crowd}); err != nil || len(found.Items) != 0 {
			t.Errorf("subscribers with a text of %d bytes: %d rows, %v", len(long), len(found.Items), err)
		}
		if found, err := s.ListAddresses(ctx, one.ID, fabric.AddressFilter{DisplayName: long}, page.Query{Size: crowd}); err != nil || len(found.Items) != 0 {
			t.Errorf("addresses with a text of %d bytes: %d rows, %v", len(long), len(found.Items), err)
		}
	}
	first, err := s.SearchSubscribers(ctx, one.ID, "example", page.Query{Size: 1})
	if err != nil || first.Next == "" {
		t.Fatalf("the first of two: %+v, %v", first, err)
	}
	if next, err := s.SearchSubscribers(ctx, one.ID, "example", page.Query{Size: 1, From: first.Next}); err != nil || len(next.Items) != 1 || next.Items[0].ID == first.Items[0].ID {
		t.Errorf("the next of two: %+v, %v", next, err)
	}
}
