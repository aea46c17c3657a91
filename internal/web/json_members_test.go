package web

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzMembers shows that splitObject and decodeMembers accept the same bodies, and find the same
// members in them.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{
		`{}`,
		`{ "a" : 1 , "b":[1,{"c":"]}\""}] }`,
		`{"a":"\\","b":null,"\u0061b":true}`,
		"{\"a\":-1.5e3}\n",
		`{"a":{"b":"}"},"c":""}`,
		`{"a":1,}`,
		`{"a":1,"a":2}`,
		`[]`,
		`{"":{}}`,
		`{}{}`,
		`{"a":"` + strings.Repeat(`\\`, 1<<12) + `"}`,
	} {
		f.Add([]byte(text))
	}

	bound := fuzzcost.Bound{CPU: time.Millisecond, CPUPerByte: 200 * time.Nanosecond, Heap: 128 << 10, PerByte: 32}
	f.Fuzz(func(t *testing.T, body []byte) {
		bound.Check(t, len(body), func() {
			want, err := decodeMembers(body)
			got, ok := splitObject(body)
			if err != nil {
				if ok {
					t.Errorf("splitObject accepts %q, but decodeMembers refuses it: %v", body, err)
				}
				return
			}
			if !ok {
				t.Fatalf("splitObject refuses %q, want %d members", body, len(want))
			}

			if len(got) != len(want) {
				t.Errorf("splitObject finds %d members in %q, want %d", len(got), body, len(want))
			}
			for name := range got {
				if !bytes.Equal(got[name], want[name]) {
					t.Errorf("the member %q of %q is %q, want %q", name, body, got[name], want[name])
				}
			}
		})
	})
}

// TestReadAll shows that readAll returns the whole text even if it is given a wrong length, and that with
// the right length it hardly allocates more than the text.
func TestReadAll(t *testing.T) {
	for _, size := range []int{0, 1, firstRead - 1, firstRead, firstRead + 1, 5 * firstRead, 1 << 20} {
		text := strings.Repeat("x", size)
		for _, length := range []int64{-1, 0, int64(size), int64(size) + 1, 1 << 40} {
			got, err := readAll(iotest.OneByteReader(strings.NewReader(text)), length)
			if err != nil || string(got) != text {
				t.Errorf("readAll of %d bytes with the length %d = %d bytes, %v, want the whole text",
					size, length, len(got), err)
			}
			if length == int64(size) && cap(got) > size+1 {
				t.Errorf("readAll of %d bytes allocates %d, want at most one byte more", size, cap(got))
			}
		}
	}
}
