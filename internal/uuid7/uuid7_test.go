package uuid7_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/uuid7"
)

// TestOrder shows that ids sort by time, even if they are made in different milliseconds.
func TestOrder(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 999_999_000, time.UTC)
	var ids []string
	for i := range 1000 {
		id := uuid7.At(start.Add(time.Duration(i) * time.Microsecond))
		u, err := uuid.Parse(id)
		if err != nil {
			t.Fatalf("At = %s, want a UUID: %v", id, err)
		}
		if u.Version() != 7 || u.Variant() != uuid.RFC4122 {
			t.Fatalf("At = %s, of version %d and variant %s, want version 7 of RFC 4122", id, u.Version(), u.Variant())
		}
		ids = append(ids, id)
	}

	if !slices.IsSorted(ids) {
		t.Error("ids created one after another are not sorted")
	}
	if first := uuid7.First(start); first > ids[0] {
		t.Errorf("First(%v) = %s, want at most %s", start, first, ids[0])
	}
	if next := uuid7.First(start.Add(time.Millisecond)); next <= ids[0] {
		t.Errorf("First of the next millisecond = %s, want more than %s", next, ids[0])
	}
}

// TestEarly shows that for times before 1970, First returns the nil UUID, which sorts before all ids.
func TestEarly(t *testing.T) {
	early := uuid7.First(time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC))
	if early != uuid.Nil.String() {
		t.Errorf("First of 1960 = %s, want %s", early, uuid.Nil)
	}
}

// TestTime shows that Time returns the time of an id, to the millisecond, and that it refuses other texts.
func TestTime(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 999_000_000, time.UTC)
	got, ok := uuid7.Time(uuid7.At(at.Add(999 * time.Microsecond)))
	if !ok || !got.Equal(at) {
		t.Errorf("the time of an id for %v is %v, %v, want %v", at, got, ok, at)
	}
	for _, id := range []string{"", "x", uuid.NewString()} {
		if got, ok := uuid7.Time(id); ok {
			t.Errorf("the time of %q is %v, want none", id, got)
		}
	}
}
