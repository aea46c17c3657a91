package store

import (
	"slices"
	"testing"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

// TestRecordingPages shows that each page of a list contains the recordings that match the filter,
// in order, no matter which query finds them.
func TestRecordingPages(t *testing.T) { EachDatabase(t, testRecordingPages) }

func testRecordingPages(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	manyRecordings(t, c, s, "p", 2000)
	for _, l := range recordingLists("p") {
		t.Run(l.name, func(t *testing.T) {
			ids := readPages(t, s, l.filter)
			if len(ids) != l.want {
				t.Errorf("the pages have %d recordings, want %d", len(ids), l.want)
			}

			sorted := l.filter.CallBegins == "" // otherwise the recordings are sorted by call
			for i := 1; i < len(ids); i++ {
				if sorted && ids[i] >= ids[i-1] {
					t.Fatalf("%s comes after %s", ids[i], ids[i-1])
				}
				if slices.Contains(ids[:i], ids[i]) {
					t.Fatalf("%s is on the pages twice", ids[i])
				}
			}
		})
	}
}

// recordingsPerPage is the size of the pages that readPages reads.
const recordingsPerPage = 300

// readPages returns the ids of the recordings on all pages of a list. The test fails if a page does
// not lead to the one before it.
func readPages(t *testing.T, s *Store, f recordings.Filter) (ids []string) {
	t.Helper()
	for q := (page.Query{Size: recordingsPerPage}); ; {
		found := listRecordings(t, s, f, q)
		switch read := len(ids); {
		case read == 0:
		case f.Name != "": // pages of searches by words may be short
			wantPageBefore(t, s, f, q.From, found.Prev, ids)
		case found.Prev != ids[read-recordingsPerPage]:
			t.Errorf("the page before %s starts with %q, want %s", q.From, found.Prev, ids[read-recordingsPerPage])
		}
		ids = append(ids, recordingIDs(found.Items)...)
		if found.Next == "" {
			return ids
		}
		q.From = found.Next
	}
}

// wantPageBefore fails the test unless the page at prev has some of the ids, in order, and nothing
// is skipped between it and the page at from.
func wantPageBefore(t *testing.T, s *Store, f recordings.Filter, from, prev string, ids []string) {
	t.Helper()
	before := listRecordings(t, s, f, page.Query{Size: recordingsPerPage, From: prev})
	found := recordingIDs(before.Items)
	if len(found) == 0 {
		t.Fatalf("the page at %q before %s is empty", prev, from)
	}

	first := slices.Index(ids, found[0])
	if first < 0 || first+len(found) > len(ids) {
		t.Fatalf("the page at %q before %s has %q, want ids on the pages that were read", prev, from, found)
	}
	end := first + len(found)
	if !slices.Equal(found, ids[first:end]) {
		t.Errorf("the page at %q before %s has %q, want %q", prev, from, found, ids[first:end])
	}
	if end < len(ids) && before.Next != ids[end] {
		t.Errorf("the page after %q, before %s, starts with %q, want %s", prev, from, before.Next, ids[end])
	}
}

func listRecordings(t *testing.T, s *Store, f recordings.Filter, q page.Query) page.Page[recordings.Recording] {
	t.Helper()
	found, err := s.ListRecordings(t.Context(), f, q)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func recordingIDs(listed []recordings.Recording) (ids []string) {
	for _, r := range listed {
		ids = append(ids, r.ID)
	}
	return ids
}
