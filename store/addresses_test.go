package store_test

import (
	"errors"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
)

// TestPages shows that pages of addresses, in each order and with each filter, can be followed
// forward and backward.
func TestPages(t *testing.T) { store.EachDatabase(t, testPages) }

func testPages(t *testing.T, c store.Config) {
	ctx := t.Context()
	rows, p := fabricRows(t, c)
	other := newProject(t, rows)
	names := []string{"d", "a", "g", "b", "f", "c", "e"}
	for _, name := range names {
		for _, project := range []fabric.Project{p, other} {
			sub, address := subscriber(project, "", name, name)
			if err := rows.CreateSubscriber(ctx, sub, address); err != nil {
				t.Fatal(err)
			}
		}
	}

	tests := []struct {
		name   string
		filter fabric.AddressFilter
		want   []string // the names on each page of three items
	}{
		{"all", fabric.AddressFilter{}, []string{"dag", "bfc", "e"}},
		{"descending", fabric.AddressFilter{Descending: true}, []string{"ecf", "bga", "d"}},
		{"by name", fabric.AddressFilter{ByName: true}, []string{"abc", "def", "g"}},
		{"by name, descending", fabric.AddressFilter{ByName: true, Descending: true}, []string{"gfe", "dcb", "a"}},
		{"a name", fabric.AddressFilter{Name: "f"}, []string{"f"}},
		{"a type", fabric.AddressFilter{Type: fabric.TypeRoom}, []string{""}},
		{"a display name", fabric.AddressFilter{DisplayName: "G"}, []string{"g"}},
		{"a wildcard", fabric.AddressFilter{DisplayName: "%"}, []string{""}},
		{"no ids", fabric.AddressFilter{IDs: []string{}}, []string{""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list := func(from string) page.Page[fabric.Address] {
				t.Helper()
				found, err := rows.ListAddresses(ctx, p.ID, tt.filter, page.Query{Size: 3, From: from})
				if err != nil {
					t.Fatal(err)
				}
				return found
			}

			found := list("")
			if found.Prev != "" {
				t.Errorf("there is a page before the first one, from %s", found.Prev)
			}
			for i, want := range tt.want {
				if i > 0 {
					if found.Next == "" {
						t.Fatalf("there are %d pages, want %d", i, len(tt.want))
					}
					found = list(found.Next)
					if got := namesOf(list(found.Prev)); got != tt.want[i-1] {
						t.Errorf("the page before page %d has %q, want %q", i, got, tt.want[i-1])
					}
				}
				if got := namesOf(found); got != want {
					t.Errorf("page %d has %q, want %q", i, got, want)
				}
			}
			if found.Next != "" {
				t.Errorf("there is a page after the last one, from %s", found.Next)
			}
		})
	}

	fromUnknown := page.Query{Size: 3, From: newID()}
	_, err := rows.ListAddresses(ctx, p.ID, fabric.AddressFilter{ByName: true}, fromUnknown)
	if !errors.Is(err, problem.Invalid) {
		t.Errorf("ListAddresses by name from an unknown id: got %v, want invalid", err)
	}
}

// namesOf returns the names on a page, without separators.
func namesOf(found page.Page[fabric.Address]) (names string) {
	for _, address := range found.Items {
		names += address.Name
	}
	return names
}
