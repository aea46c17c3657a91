package laml_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestUploadsThatAreRefused(t *testing.T) {
	s := newServer(t)
	wav := corpusFile(t, speech)
	file := part{name: "x", file: "a.wav", value: string(wav)}
	raw := body("audio/wav", wav)
	tooLarge := append(bytes.Clone(wav), make([]byte, maxUpload)...)
	large := body("audio/wav", tooLarge)
	unannounced := func(r *http.Request) {
		body("audio/wav", tooLarge)(r)
		r.ContentLength = -1
	}
	cutShort := "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a\"\r\n\r\nRIFF"
	hugeField := part{name: "CallSid", value: strings.Repeat("x", 70_000)}

	tests := []struct {
		name         string
		query        string
		opts         []option
		status, code int
	}{
		{"empty", "", []option{body("audio/wav", nil)}, 400, 10000},
		{"a page", "", []option{body("audio/wav", []byte("<html><script>alert(1)</script></html>"))}, 415, 20415},
		{"FLAC", "", []option{body("audio/flac", []byte("fLaC"+strings.Repeat("\x00", 1000)))}, 415, 20415},
		{"audio without a header or a known codec", "",
			[]option{body("audio/wav", corpusFile(t, "speech.ulaw"))}, 415, 20415},
		{"L16 without a rate", "", []option{body("audio/L16", corpusFile(t, "speech.sln"))}, 400, 10000},
		{"unknown codec", "", []option{body("audio/wav", corpusFile(t, "unknown_tag.wav"))}, 415, 20415},
		{"broken", "", []option{body("audio/wav", corpusFile(t, "zero_channels.wav"))}, 400, 10000},
		{"JSON", "", []option{body("application/json", []byte("{}"))}, 415, 20415},
		{"curl's default content type", "", []option{body("application/x-www-form-urlencoded", wav)}, 415, 20415},
		{"unreadable type", "", []option{body("audio;;", wav)}, 415, 20415},
		{"form without boundary", "", []option{body("multipart/form-data", wav)}, 415, 20415},
		{"form without file", "", []option{form(t, part{name: "CallSid", value: "c"})}, 400, 10000},
		{"form with two files", "", []option{form(t, file, file)}, 400, 10000},
		{"form cut short", "",
			[]option{body("multipart/form-data; boundary=b", []byte(cutShort))}, 400, 10000},
		{"form with a huge field", "", []option{form(t, hugeField, file)}, 413, 20413},
		{"form with an invalid field after the file", "",
			[]option{form(t, file, part{name: "Direction", value: "up"})}, 400, 10000},
		{"form with a repeated field", "",
			[]option{form(t, part{name: "To", value: "a"}, part{name: "To", value: "b"}, file)}, 400, 10000},
		{"too large, announced", "", []option{large}, 413, 20413},
		{"too large, not announced", "", []option{unannounced}, 413, 20413},
		{"query", "Track=left", []option{raw}, 400, 10000},
		{"query, repeated", "From=a&From=b", []option{raw}, 400, 10000},
		{"query, unreadable", "From=%zz", []option{raw}, 400, 10000},
		{"query, not UTF-8", "From=%ff", []option{raw}, 400, 10000},
		{"query, control characters", "From=a%0d%0ab", []option{raw}, 400, 10000},
		{"query, long", "CallSid=" + strings.Repeat("x", 256), []option{raw}, 400, 10000},
		{"query, two parents", "CallSid=a&ConferenceSid=b", []option{raw}, 400, 10000},
		{"query, not a date", "StartTime=soon", []option{raw}, 400, 10000},
		{"query, too early", "StartTime=-1", []option{raw}, 400, 10000},
		{"query, not a number", "StartTime=NaN", []option{raw}, 400, 10000},
		{"query, too late", "StartTime=2030-01-01", []option{raw}, 400, 10000},
		{"query, an invalid lifetime of links", "MediaUrlTtl=0", []option{raw}, 400, 10000},
		{"query, a live recording, invalid link lifetime", "Status=in-progress&CallSid=c&MediaUrlTtl=soon", nil,
			400, 10000},
		{"query, unknown subscriber", "SubscriberId=x", []option{raw}, 400, 10000},
	}

	for _, tt := range tests {
		a := s.do(t, "POST", s.path("/Recordings?"+tt.query), append(tt.opts, s.basic)...)
		wantError(t, tt.name, a, tt.status, tt.code)
	}

	if n := s.mediaFiles(t); n != 0 {
		t.Errorf("files left: %d, want none", n)
	}
	wantList(t, s, url.Values{"IncludeSoftDeleted": {"true"}}, nil)
}

// TestUploadCutOff shows that neither bytes nor a row remain if a sender dies during an upload.
func TestUploadCutOff(t *testing.T) {
	s := newServer(t)
	wav := corpusFile(t, speech)
	requests := map[string]string{
		"raw": "Content-Type: audio/wav\r\nContent-Length: " + fmt.Sprint(len(wav)) + "\r\n\r\n" +
			string(wav[:40_000]),
		"chunked": "Content-Type: audio/wav\r\nTransfer-Encoding: chunked\r\n\r\n9c40\r\n" +
			string(wav[:40_000]) + "\r\n",
		"form": "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 99999\r\n\r\n" +
			"--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a\"\r\n\r\n" + string(wav[:40_000]),
	}

	for name, rest := range requests {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}

		r := http.Request{Header: make(http.Header)}
		s.basic(&r)
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n%s",
			s.path("/Recordings"), r.Header.Get("Authorization"), rest)
		if err != nil {
			t.Fatal(err)
		}

		eventually(t, name+": the upload has begun", func() bool { return s.mediaFiles(t) == 1 })
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+": the files are deleted", func() bool { return s.mediaFiles(t) == 0 })
	}

	wantList(t, s, nil, nil)
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("not true within a minute: %s", what)
		case <-tick.C:
		}
	}
}
