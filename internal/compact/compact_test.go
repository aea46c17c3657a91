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
	texts := []string{
		"",
		"a",
		id,
		strings.ToUpper(id),
		"{" + id[:34] + "}",
		strings.Repeat("k", 300),
		"\x00é",
	}
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
	if got := r.Time(); !got.Equal(at) {
		t.Errorf("the time is %v, want %v", got, at)
	}
	if got := r.Time(); !got.IsZero() {
		t.Errorf("the zero time is %v, want zero", got)
	}

	if !r.More() {
		t.Error("More = false before the number, want true")
	}
	if r.Done() {
		t.Error("Done = true before the number, want false")
	}
	if got := r.Number(); got != -5 {
		t.Errorf("the number is %d, want -5", got)
	}
	if r.More() {
		t.Error("More = true at the end, want false")
	}
	if !r.Done() {
		t.Error("Done = false at the end, want true")
	}
}

// TestTruncated shows that a Reader notices when an encoding ends too early, or contains a size larger
// than the rest of the encoding.
func TestTruncated(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":         {},
		"half a text":     {5, 'a', 'b'},
		"half a UUID":     {1, 0, 0, 0},
		"an endless size": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"a huge size":     binary.AppendUvarint(nil, 1<<63),
	} {
		t.Run(name, func(t *testing.T) {
			r := compact.NewReader(b)
			if got := r.Text(); got != "" {
				t.Errorf("the text is %q, want an empty one", got)
			}
			if r.Done() {
				t.Error("Done = true after an incomplete text, want false")
			}
			if r.More() {
				t.Error("More = true after an incomplete text, want false")
			}

			r = compact.NewReader(b)
			if got := r.List(); r.Done() {
				t.Errorf("Done = true after the incomplete list %q, want false", got)
			}
		})
	}
}
