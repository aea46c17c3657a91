package laml

import (
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/internal/page"
)

// FuzzRange requests ranges of a file, and checks that each returned range lies within the file.
func FuzzRange(f *testing.F) {
	for _, header := range []string{
		"bytes=0-0", "bytes=-0", "bytes=-1", "bytes=5-", "bytes=99-", "bytes=0-0,2-3", "bytes=9-1", "Bytes=0-1",
		"bytes= - 0 ", "bytes=-00", "bytes=-+0",
		"bytes=9223372036854775807-", "bytes=-9223372036854775808", "none=0-1",
		"bytes=" + strings.Repeat("0-,", 1<<14), "bytes=" + strings.Repeat("9", 1<<15) + "-",
		strings.Repeat(",", 1<<15),
	} {
		f.Add(header)
	}

	const size = 64
	f.Fuzz(func(t *testing.T, header string) {
		fuzzcost.Parser.Check(t, len(header), func() {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header["Range"] = []string{header}
			cleanRange(r.Header)
			w := httptest.NewRecorder()
			http.ServeContent(w, r, "a.wav", time.Time{}, strings.NewReader(strings.Repeat("x", size)))

			contentRange := w.Header().Get("Content-Range")
			switch w.Code {
			case 200:
			case 206:
				if contentRange != "" {
					wantRangeWithin(t, contentRange, size)
				}
			case 416:
				if want := fmt.Sprintf("bytes */%d", size); contentRange != "" && contentRange != want {
					t.Errorf("Range %q is refused with Content-Range %q, want %q", header, contentRange, want)
				}
			default:
				t.Errorf("Range %q is answered with %d, want 200, 206 or 416", header, w.Code)
			}
			if n, limit := w.Body.Len(), maxRanges*(size+512); n > limit {
				t.Errorf("Range %q is answered with %d bytes, want at most %d", header, n, limit)
			}
		})
	})
}

// wantRangeWithin checks that a Content-Range lies within a file of the given size.
func wantRangeWithin(t *testing.T, contentRange string, size int) {
	t.Helper()
	var first, last, total int
	if _, err := fmt.Sscanf(contentRange, "bytes %d-%d/%d", &first, &last, &total); err != nil {
		t.Errorf("Content-Range %q: %v", contentRange, err)
		return
	}
	if first > last || last >= size {
		t.Errorf("Content-Range %q, want a range within %d bytes", contentRange, size)
	}
	if total != size {
		t.Errorf("Content-Range %q has the size %d, want %d", contentRange, total, size)
	}
}

// FuzzSid splits the last element of a path into a Sid and an extension.
func FuzzSid(f *testing.F) {
	for _, file := range []string{
		"a.wav", "a", ".mp3", "a.b.json", "..", strings.Repeat(".", 1<<15),
		strings.Repeat("../", 1<<13), "\x00.wav", "%2e%2e.wav",
	} {
		f.Add(file)
	}

	f.Fuzz(func(t *testing.T, file string) {
		fuzzcost.Parser.Check(t, len(file), func() {
			sid, ext := parseFile(file)
			if sid+ext != file {
				t.Errorf("parseFile(%q) = %q, %q, want parts that make up the whole name", file, sid, ext)
			}
			if strings.Count(ext, ".") > 1 {
				t.Errorf("parseFile(%q) has the extension %q, want at most one dot", file, ext)
			}
		})
	})
}

// FuzzListQuery parses the query of a list. A link to the requested page must lead to the same page.
func FuzzListQuery(f *testing.F) {
	for _, query := range []string{
		"PageSize=5&Page=1&PageToken=PA0199a000-0000-7000-8000-000000000000", "DateCreated%3C=2026-11-20&Flag=clipped",
		"DateCreated=" + strings.Repeat("(", 1<<13),
		"DateCreated=Fri,%2020%20Nov%202026%20" + strings.Repeat("()", 1<<12),
		"PageSize=" + strings.Repeat("9", 1<<14), strings.Repeat("CallSid=&", 1<<11), strings.Repeat("%25", 1<<13),
		"CallSid=" + strings.Repeat("a", 1<<14), strings.Repeat("&", 1<<15),
	} {
		f.Add(query)
	}

	bound := fuzzcost.Parser
	bound.PerByte = 256 // a parameter of three bytes takes a map entry, and is repeated in links
	f.Fuzz(func(t *testing.T, query string) {
		bound.Check(t, len(query), func() {
			parsed, err := parseListQuery(&http.Request{URL: &url.URL{Path: "/", RawQuery: query}})
			if err != nil {
				return
			}
			if size := parsed.query.Size; size < 1 || size > page.MaxSize {
				t.Errorf("%q asks for %d items, want 1 to %d", query, size, page.MaxSize)
			}
			if parsed.page < 0 {
				t.Errorf("%q asks for page %d, want at least 0", query, parsed.page)
			}

			uri := parsed.uri(parsed.page, parsed.query.From)
			link, err := url.Parse(uri)
			if err != nil {
				t.Fatalf("%q has the link %q: %v", query, uri, err)
			}
			again, err := parseListQuery(&http.Request{URL: link})
			if err != nil {
				t.Fatalf("%q has the link %q, which is refused: %v", query, uri, err)
			}
			if again.query != parsed.query {
				t.Errorf("the link %q is parsed as %+v, want %+v", uri, again.query, parsed.query)
			}
		})
	})
}

// FuzzUpload reads multipart forms of uploads, and checks that their fields are limited.
func FuzzUpload(f *testing.F) {
	const begin, end = "--x\r\nContent-Disposition: form-data; name=a", "\r\n--x--\r\n"
	for _, form := range []string{
		begin + "\r\n\r\n1" + end, begin + "; filename=b.wav\r\n\r\nRIFF" + end,
		strings.Repeat(begin+"\r\n\r\n1\r\n", 100) + begin + "; filename=b.wav\r\n\r\nRIFF" + end,
		begin + "; filename=b.wav\r\n\r\nRIFF\r\n" + strings.Repeat(begin+"\r\n\r\n1\r\n", 100) + end,
		begin + strings.Repeat("; a=b", 1<<12) + "\r\n\r\n" + end, strings.Repeat("--x\r\n\r\n", 1<<12) + end,
		begin + "\r\n\r\n" + strings.Repeat("\r\n--", 1<<13) + end,
		"--x\r\n" + strings.Repeat("A: b\r\n", 1<<12) + "\r\n" + end,
		begin + "\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" + strings.Repeat("=\r\n", 1<<12) + end,
	} {
		f.Add(form)
	}

	bound := fuzzcost.Bound{CPU: 5 * time.Millisecond, CPUPerByte: time.Microsecond, Heap: 256 << 10, PerByte: 128}
	f.Fuzz(func(t *testing.T, text string) {
		bound.Check(t, len(text), func() {
			parts := &form{reader: multipart.NewReader(strings.NewReader(text), "x"), fields: make(url.Values)}
			if parts.findFile() != nil {
				return
			}
			if _, err := io.Copy(io.Discard, parts); err != nil {
				return
			}
			if parts.bytes > maxFields {
				t.Errorf("%d bytes of fields are accepted, want at most %d", parts.bytes, maxFields)
			}
			if parts.parts > maxParts {
				t.Errorf("%d fields are accepted, want at most %d", parts.parts, maxParts)
			}
		})
	})
}

// FuzzAccept parses Accept headers.
func FuzzAccept(f *testing.F) {
	for _, header := range []string{
		"application/json",
		"*/*",
		"text/html, Application/JSON;q=0.1",
		strings.Repeat(",", 1<<15),
		strings.Repeat("a;b,", 1<<13),
	} {
		f.Add(header)
	}

	f.Fuzz(func(t *testing.T, header string) {
		fuzzcost.Parser.Check(t, len(header), func() {
			r := &http.Request{Header: http.Header{"Accept": {header}}}
			if wantsJSON(r) && !strings.Contains(strings.ToLower(header), "application/json") {
				t.Errorf("%q counts as a request for JSON", header)
			}
		})
	})
}
