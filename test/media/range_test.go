package media

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestRangesMakeTheWhole requests a recording in consecutive ranges of the same size, for several
// sizes. Joined together, the ranges must be the whole file.
func TestRangesMakeTheWhole(t *testing.T) {
	p := harness.Shared(t).NewProject(t)
	wav := harness.ReadSpeech(t)
	path := p.LaML("/Recordings/" + p.Upload(t, wav) + ".wav")
	for _, size := range []int{1, 43, 44, 4096, 65537, len(wav) + 1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var whole []byte
			for start := 0; start < len(wav); start += size {
				const header = 44 // bytes of a WAV file's header; the rest is not fetched in tiny ranges
				if size < header && start > 2*header {
					whole = append(whole, wav[start:]...)
					break
				}

				span := harness.Header("Range", fmt.Sprintf("bytes=%d-%d", start, start+size-1))
				a := p.Get(t, path, span).Want(t, 206)
				last := min(start+size, len(wav)) - 1
				want := fmt.Sprintf("bytes %d-%d/%d", start, last, len(wav))
				if got := a.Header.Get("Content-Range"); got != want {
					t.Fatalf("Content-Range = %q, want %q", got, want)
				}
				whole = append(whole, a.Body...)
			}

			if !bytes.Equal(whole, wav) {
				t.Errorf("the ranges of %d bytes did not make up the whole file", size)
			}
		})
	}
}

// TestRangeForms shows that a range may omit its end or count from the end of the file. A range
// beyond the end is refused, and ranges in unknown units are ignored. HEAD returns the headers of
// the whole file.
func TestRangeForms(t *testing.T) {
	p := harness.Shared(t).NewProject(t)
	wav := harness.ReadSpeech(t)
	path := p.LaML("/Recordings/" + p.Upload(t, wav) + ".wav")
	length := len(wav)

	tests := []struct {
		header string
		status int
		body   []byte // not checked if nil
	}{
		{header: "bytes=0-", status: 206, body: wav},
		{header: "bytes=-100", status: 206, body: wav[length-100:]},
		{header: fmt.Sprintf("bytes=%d-", length-1), status: 206, body: wav[length-1:]},
		{header: fmt.Sprintf("bytes=%d-", length), status: 416},
		{header: "lines=1-2", status: 200, body: wav}, // unknown units are ignored (RFC 9110, section 14.2)
	}

	for _, tt := range tests {
		a := p.Get(t, path, harness.Header("Range", tt.header))
		if a.Status != tt.status {
			t.Errorf("Range %q returned the status %d, want %d", tt.header, a.Status, tt.status)
		}
		if tt.body != nil && !bytes.Equal(a.Body, tt.body) {
			t.Errorf("Range %q returned %d bytes, want the %d bytes of the range", tt.header, len(a.Body), len(tt.body))
		}
	}

	head := p.Do(t, "HEAD", path).Want(t, 200)
	if got, want := head.Header.Get("Content-Length"), fmt.Sprint(length); got != want {
		t.Errorf("Content-Length = %q, want %q", got, want)
	}
	if len(head.Body) != 0 {
		t.Errorf("HEAD returned %d bytes, want none", len(head.Body))
	}
	if got := head.Header.Get("Accept-Ranges"); got != "bytes" {
		t.Errorf("Accept-Ranges = %q, want bytes", got)
	}

	etag := p.Get(t, path).Header.Get("ETag")
	if etag == "" {
		t.Error("GET returned no ETag")
	}
	if got := head.Header.Get("ETag"); got != etag {
		t.Errorf("HEAD returned the ETag %q, want %q as for GET", got, etag)
	}
}
