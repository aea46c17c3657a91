package media

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestRangesMakeTheWhole shows that the ranges of a recording, in several sizes, together are the
// whole file.
func TestRangesMakeTheWhole(t *testing.T) {
	p := harness.Shared(t).NewProject(t)
	wav := harness.ReadSpeech(t)
	path := p.LaML("/Recordings/" + p.Upload(t, wav) + ".wav")
	for _, size := range []int{1, 43, 44, 4096, 65537, len(wav) + 1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var got []byte
			for from := 0; from < len(wav); from += size {
				if size < 44 && from > 2*44 { // only the header is fetched in tiny ranges
					got = append(got, wav[from:]...)
					break
				}

				a := p.Get(t, path, harness.Header(
					"Range", fmt.Sprintf("bytes=%d-%d", from, from+size-1))).Want(t, 206)
				last := min(from+size, len(wav)) - 1
				if got, want := a.Header.Get("Content-Range"),
					fmt.Sprintf("bytes %d-%d/%d", from, last, len(wav)); got != want {
					t.Fatalf("Content-Range = %q, want %q", got, want)
				}
				got = append(got, a.Body...)
			}

			if !bytes.Equal(got, wav) {
				t.Errorf("the ranges of %d bytes do not make up the whole file", size)
			}
		})
	}
}

// TestRangeForms shows that ranges without an end and ranges that count from the end of the file
// also work. A range beyond the end is refused, and ranges in unknown units are ignored. HEAD
// returns the headers of the whole file.
func TestRangeForms(t *testing.T) {
	p := harness.Shared(t).NewProject(t)
	wav := harness.ReadSpeech(t)
	path := p.LaML("/Recordings/" + p.Upload(t, wav) + ".wav")
	n := len(wav)

	tests := []struct {
		header string
		status int
		want   []byte
	}{
		{"bytes=0-", 206, wav},
		{"bytes=-100", 206, wav[n-100:]},
		{fmt.Sprintf("bytes=%d-", n-1), 206, wav[n-1:]},
		{fmt.Sprintf("bytes=%d-", n), 416, nil},
		{"lines=1-2", 200, wav}, // unknown units are ignored (RFC 9110, section 14.2)
	}

	for _, tt := range tests {
		a := p.Get(t, path, harness.Header("Range", tt.header))
		if a.Status != tt.status || (tt.want != nil && !bytes.Equal(a.Body, tt.want)) {
			t.Errorf("Range %q = %d with %d bytes, want %d with %d", tt.header, a.Status, len(a.Body),
				tt.status, len(tt.want))
		}
	}

	head := p.Do(t, "HEAD", path).Want(t, 200)
	if got := head.Header.Get("Content-Length"); got != fmt.Sprint(n) || len(head.Body) != 0 {
		t.Errorf("HEAD has Content-Length %s and %d bytes, want %d and none", got, len(head.Body), n)
	}
	if got := head.Header.Get("Accept-Ranges"); got != "bytes" {
		t.Errorf("Accept-Ranges = %q, want bytes", got)
	}
	if etag := head.Header.Get("ETag"); etag == "" || etag != p.Get(t, path).Header.Get("ETag") {
		t.Errorf("ETag = %q, want the same for HEAD and GET", etag)
	}
}
