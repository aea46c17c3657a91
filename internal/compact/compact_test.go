package compact_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/internal/compact"
)

const id = "0190a6f2-7c1e-7d5a-8b1f-3f6f0a1b2c3d"

// TestReader shows that a Reader returns what was appended.
func TestReader(t *testing.T) {
	texts := []string{"", "a", id, strings.ToUpper(id), "{" + id[:34] + "}", strings.Repeat("k", 300), "\x00é"}
	at := time.UnixMicro(1_700_000_000_123_456).UTC()

	b := compact.AppendList(nil, texts)
	b = compact.AppendList(b, nil)
	b = compact.AppendTime(b, at)
	b = compact.AppendTime(b, time.Time{})
	b = binary.AppendVarint(b, -5)

	r := compact.NewReader(b)
	if diff := cmp.Diff(texts, r.List()); diff != "" {
		t.Errorf("the texts changed:\n%s", diff)
	}

	if got := r.List(); got != nil {
		t.Errorf("an empty list is %q, want nil", got)
	}
	if got, zero := r.Time(), r.Time(); !got.Equal(at) || !zero.IsZero() {
		t.Errorf("the times are %v and %v, want the appended time and zero", got, zero)
	}
	if !r.More() || r.Done() {
		t.Error("the number is missing")
	}

	if n := r.Number(); n != -5 || r.More() || !r.Done() {
		t.Errorf("the number is %d, more: %t, done: %t, want -5, false and true", n, r.More(), r.Done())
	}
}

// TestTruncated shows that a Reader notices that an encoding ends too early, or that it claims a
// size that is longer than the encoding.
func TestTruncated(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":         {},
		"half a text":     {5, 'a', 'b'},
		"half a UUID":     {1, 0, 0, 0},
		"an endless size": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"a huge size":     binary.AppendUvarint(nil, 1<<63),
	} {
		text, list := compact.NewReader(b), compact.NewReader(b)
		if got := text.Text(); got != "" || text.Done() || text.More() {
			t.Errorf("%s: the text is %q, done: %t", name, got, text.Done())
		}
		if list.List(); list.Done() {
			t.Errorf("%s: the list is complete", name)
		}
	}
}
