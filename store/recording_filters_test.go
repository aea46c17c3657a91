package store

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// operatorRows returns a store with project p and operator o.
func operatorRows(t *testing.T, c Config) *Store {
	t.Helper()
	s, _, _ := grantRows(t, c)
	o := operator.Operator{
		ID:      "o",
		Email:   "o@example.com",
		Name:    "O",
		Roles:   []operator.Membership{{Role: operator.Owner}},
		Created: time.Now(),
	}
	if err := s.CreateOperator(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return s
}

func saveSearch(t *testing.T, s *Store, name, query string, most int) error {
	t.Helper()
	return s.SaveRecordingFilter(t.Context(), operator.RecordingFilter{
		ID:         newID(),
		OperatorID: "o",
		ProjectID:  "p",
		Name:       name,
		Query:      query,
		Created:    time.Now(),
	}, most)
}

func TestFiltersAreLimited(t *testing.T) { EachDatabase(t, testFiltersAreLimited) }

// testFiltersAreLimited shows that concurrent saves together do not exceed the limit.
func testFiltersAreLimited(t *testing.T, c Config) {
	s := operatorRows(t, c)
	const most, tries = 5, 20
	var saved atomic.Int64
	var saving sync.WaitGroup
	for i := range tries {
		saving.Go(func() {
			err := saveSearch(t, s, fmt.Sprint("filter ", i), "held=yes", most)
			switch {
			case err == nil:
				saved.Add(1)
			case !errors.Is(err, problem.Invalid):
				t.Error(err)
			}
		})
	}
	saving.Wait()
	if n := saved.Load(); n != most {
		t.Errorf("%d of %d saves succeeded, want %d", n, tries, most)
	}

	found, err := s.ListRecordingFilters(t.Context(), "o", "p")
	if err != nil || len(found) != most {
		t.Errorf("%d filters are saved, %v, want %d", len(found), err, most)
	}
}

func TestEraseFilters(t *testing.T) { EachDatabase(t, testEraseFilters) }

// testEraseFilters shows that an erasure deletes the saved searches for the subscriber, and no others.
func testEraseFilters(t *testing.T, c Config) {
	s := operatorRows(t, c)
	sub := plantCanary(t, s)
	if err := saveSearch(t, s, "Calls of canary@example.com", "held=yes", 20); err != nil {
		t.Fatal(err)
	}

	for name, value := range map[string]string{
		"email":           "Canary@Example.com ",
		"address":         "/private/canary",
		"number":          "+1 (555) 019-9877",
		"national number": "5550199877",
		"id":              sub.ID,
		"other email":     "bob@example.com",
		"other number":    "+1 555 019 9878",
		"end of a number": "9877",
		"word":            "example",
	} {
		if err := saveSearch(t, s, name, url.Values{"q": {value}, "tag": {"sales"}}.Encode(), 20); err != nil {
			t.Fatal(err)
		}
	}

	erasure, err := s.EraseSubscriber(t.Context(), "p", erasureOf(sub.ID), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if n := erasure.Deleted["recording_filters"]; n != 6 {
		t.Errorf("EraseSubscriber deletes %d filters, want 6", n)
	}
	wantNoCanary(t, s, c.URL)
	left, err := s.ListRecordingFilters(t.Context(), "o", "p")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range left {
		names = append(names, f.Name)
	}
	if want := []string{"end of a number", "other email", "other number", "word"}; !slices.Equal(names, want) {
		t.Errorf("the filters %q remain, want %q", names, want)
	}
}

// TestSearchesFor shows that short names do not match dates, durations or longer words.
func TestSearchesFor(t *testing.T) {
	for query, want := range map[string]bool{
		"subscriber=17":           true,
		"q=customer+17":           true,
		"party=%2Fprivate%2Fada":  true,
		"q=Ada%40example.com":     true,
		"after=2026-11-17":        false,
		"longer=17":               false,
		"q=170":                   false,
		"q=2026-11-17":            false,
		"party=%2Fprivate%2Fadam": false,
		"q=nada%40example.com":    false,
		"":                        false,
	} {
		f := operator.RecordingFilter{Name: "filter", Query: query}
		if got := searchesFor(f, []string{"17", "ada@example.com", "/private/ada"}); got != want {
			t.Errorf("the filter %q names the subscriber: %t, want %t", query, got, want)
		}
	}
}
