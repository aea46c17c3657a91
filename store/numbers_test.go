package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// ofParty returns a filter for the recordings of project p in which the given party called or was
// called.
func ofParty(party string) recordings.Filter {
	return recordings.Filter{Owner: recordings.Owner{ProjectID: "p"}, Party: party}
}

// callersOf lists the callers of the recordings that a search by party finds.
func callersOf(t *testing.T, s *Store, party string) (callers []string) {
	t.Helper()
	found := listRecordings(t, s, ofParty(party), page.Query{Size: 100})
	for _, r := range found.Items {
		callers = append(callers, r.From)
	}
	return callers
}

// addFrom adds a recording of a call from the given party.
func addFrom(t *testing.T, s *Store, from string) {
	t.Helper()
	r := recordings.Recording{
		ID:        newID(),
		Sid:       newID(),
		ProjectID: "p",
		Bytes:     10,
		Created:   time.Now(),
		Metadata:  recordings.Metadata{From: from, To: "/private/ada"},
	}
	_, added, err := s.AddRecording(t.Context(), r, recordings.Arrival{})
	if err != nil || !added {
		t.Fatalf("AddRecording = %v, %v, want true", added, err)
	}
}

// numberSpellings are ways to write one number.
var numberSpellings = []string{
	"+1 (415) 555-0134",
	"+14155550134",
	"14155550134",
	"0014155550134",
	"01114155550134",
	"+1.415.555.0134",
	"tel:+1-415-555-0134",
	"sip:+14155550134@pbx.example.com",
	"4155550134",
	"(415) 555-0134",
	"0415 555 0134",
}

func TestSearchByNumber(t *testing.T) { EachDatabase(t, testSearchByNumber) }

// testSearchByNumber shows that a number is found in any spelling, regardless of the stored
// spelling, and by its last digits.
func testSearchByNumber(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	others := []string{"+49 30 5550134", "+14155550135", "1000", "/private/bob"}
	for _, from := range append(others, numberSpellings...) {
		addFrom(t, s, from)
	}

	for _, asked := range numberSpellings {
		if found := callersOf(t, s, asked); len(found) != len(numberSpellings) {
			t.Errorf("%q finds %q, want all %d spellings", asked, found, len(numberSpellings))
		}
	}

	for asked, want := range map[string]int{
		"0134":           12,
		"5550134":        12,
		"0135":           1,
		"+49 30 5550134": 1,
		"030 5550134":    1,
		"1000":           1,
		"000":            1,
		"9999999":        0,
		"/private/bob":   1,
		"/private/ada":   15,
		"bob":            0,
	} {
		if found := callersOf(t, s, asked); len(found) != want {
			t.Errorf("%q finds %q, want %d", asked, found, want)
		}
	}
}

// TestSearchByBeginning shows that a number or an address is found by its beginning. The plus of a
// number can be omitted. A search is refused if too many numbers begin with its text.
func TestSearchByBeginning(t *testing.T) { EachDatabase(t, testSearchByBeginning) }

func testSearchByBeginning(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	for _, from := range []string{
		"+14155550134",
		"14155550135",
		"0014155550136",
		"+1 415 555 0137",
		"+1 (415) 555-0138",
		"+4930123456",
		"+49 (0)30 999",
		"/private/bob-1",
	} {
		addFrom(t, s, from)
	}
	addFrom(t, s, "") // a recording without a caller
	find := func(begin string) (page.Page[recordings.Recording], error) {
		f := recordings.Filter{Owner: recordings.Owner{ProjectID: "p"}, PartyBegins: begin}
		return s.ListRecordings(t.Context(), f, page.Query{Size: 100})
	}

	for begin, want := range map[string]int{
		"+1415":         5,
		"1415":          5,
		"+1 415":        5,
		"+1 (415) 55":   5,
		"+4930":         2,
		"/private/bob-": 1,
		"/private/a":    9,
		"+1416":         0,
		"5550134":       0,
		"(0)":           0,
		" - ":           0,
	} {
		found, err := find(begin)
		if err != nil || len(found.Items) != want {
			t.Errorf("%q finds %d recordings, %v, want %d", begin, len(found.Items), err, want)
		}
	}

	for i := range maxNumbers {
		addFrom(t, s, fmt.Sprintf("+1415666%04d", i))
	}
	if _, err := find("+1415"); !errors.Is(err, problem.Invalid) {
		t.Errorf("searching for the beginning of %d numbers = %v, want an error", maxNumbers+1, err)
	}
	found, err := find("+14156660001")
	if err != nil || len(found.Items) != 1 {
		t.Errorf("a whole number finds %d recordings, %v, want one", len(found.Items), err)
	}
}

func TestSearchByTooShortEnd(t *testing.T) {
	s, _, _ := grantRows(t, Config{Dir: t.TempDir(), Audit: auditKey(t)})
	for i := range maxNumbers + 1 {
		addFrom(t, s, "+1415555"+string(rune('0'+i/10))+string(rune('0'+i%10))+"77")
	}
	_, err := s.ListRecordings(t.Context(), ofParty("77"), page.Query{Size: 10})
	if !errors.Is(err, problem.Invalid) {
		t.Errorf("searching for the end of %d numbers = %v, want an error", maxNumbers+1, err)
	}
	if found := callersOf(t, s, "550577"); len(found) != 1 {
		t.Errorf("a longer end finds %q, want one", found)
	}
}

func TestIndexRecordings(t *testing.T) { EachDatabase(t, testIndexRecordings) }

// testIndexRecordings shows that recordings stored by an earlier version are found by number after
// IndexRecordings.
func testIndexRecordings(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	for range indexBatch + 1 {
		addFrom(t, s, "+1 415 555 0134")
	}

	err := s.db.Once(t.Context(), func(tx database.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE recordings SET from_tail = NULL, to_tail = NULL, words = NULL`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	if found := callersOf(t, s, "5550134"); len(found) != 0 {
		t.Errorf("before IndexRecordings, %d recordings are found, want none", len(found))
	}
	if err := s.IndexRecordings(t.Context()); err != nil {
		t.Fatal(err)
	}

	found := listRecordings(t, s, ofParty("5550134"), page.Query{Size: 1000})
	if want := indexBatch + 1; len(found.Items) != want {
		t.Errorf("%d recordings are found, want %d", len(found.Items), want)
	}
}
