package laml_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"
)

// A part is a field in a form. If file or kind is set, the part is the uploaded file.
type part struct{ name, file, kind, value string }

func form(t *testing.T, parts ...part) option {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		disposition := fmt.Sprintf(`form-data; name=%q`, p.name)
		if p.file != "" {
			disposition += fmt.Sprintf(`; filename=%q`, p.file)
		}

		h := textproto.MIMEHeader{"Content-Disposition": {disposition}}
		if p.kind != "" {
			h.Set("Content-Type", p.kind)
		}

		to, err := w.CreatePart(h)
		if err != nil {
			t.Fatal(err)
		}

		if _, err := io.WriteString(to, p.value); err != nil {
			t.Fatal(err)
		}
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return body(w.FormDataContentType(), b.Bytes())
}

func TestUploadForms(t *testing.T) {
	s := newServer(t)
	wav := string(corpusFile(t, speech))
	file := part{"x", "a.wav", "", wav}
	tests := []struct {
		name string
		opts []option
		want map[string]string // members of the document, formatted
	}{
		{"raw", []option{body("audio/wav", []byte(wav))},
			map[string]string{"call_sid": "<nil>", "duration": "6", "source": "StartCallRecordingApi"}},
		{"raw, of no type", []option{body("", []byte(wav))}, nil},
		{"raw, octets", []option{body("application/octet-stream; x=y", []byte(wav))}, nil},
		{"raw, headers", []option{
			body("audio/x-wav", []byte(wav)), header("X-Recording-CallSid", "c-1"),
			header("X-Recording-From", "+1555"),
			header("X-Recording-Start-Time", "Sat, 21 Nov 2026 09:00:00 +0000"),
			header("X-Recording-Direction", "outbound"),
		}, map[string]string{
			"call_sid": "c-1", "from": "+1555", "direction": "outbound",
			"start_time": "Sat, 21 Nov 2026 09:00:00 +0000", "end_time": "Sat, 21 Nov 2026 09:00:06 +0000",
		}},
		{"form, file first", []option{form(
			t, file, part{name: "CallSid", value: "c-2"}, part{name: "Track", value: "inbound"})},
			map[string]string{"call_sid": "c-2", "track": "inbound"}},
		{"form, file last", []option{form(
			t, part{name: "ConferenceSid", value: "r"}, part{name: "From", value: ""}, file)},
			map[string]string{"conference_sid": "r", "source": "StartConferenceRecording", "from": "<nil>"}},
		{"form, file by its type", []option{form(t, part{name: "ngfile", kind: "audio/wav", value: wav})}, nil},
		{"rtpengine", []option{
			form(t, part{"ngfile", "abc-mix.wav", "audio/x-wav", wav}), header("X-Recording-Call-ID", "f00@10.0.0.1"),
			header("X-Recording-Full-File-Name", "/var/spool/abc-mix.wav"),
			header("X-Recording-Call-Start-Time", "1795251600.250000"),
			header("X-Recording-File-Format", "wav"),
		}, map[string]string{"call_sid": "f00@10.0.0.1", "start_time": "Sat, 21 Nov 2026 09:00:00 +0000"}},
	}

	for _, tt := range tests {
		a := s.do(t, "POST", s.path("/Recordings.json"), append(tt.opts, s.basic)...)
		if a.StatusCode != http.StatusCreated {
			t.Errorf("%s = %d %s, want 201", tt.name, a.StatusCode, a.body)
			continue
		}

		got := read[map[string]any](t, a)
		for name, want := range tt.want {
			value, ok := got[name]
			if !ok {
				value = got["media"].(map[string]any)[name]
			}
			if fmt.Sprint(value) != want {
				t.Errorf("%s: %s = %v, want %s", tt.name, name, value, want)
			}
		}

		if media := s.do(t, "GET", s.path(fmt.Sprintf("/Recordings/%s.wav", got["sid"]))); string(media.body) != wav {
			t.Errorf("%s: the media has %d bytes and differs from the upload", tt.name, len(media.body))
		}
	}
}

// TestUploadsOfOtherFormats shows that audio without a header is recognized by its type or name.
// It also shows that formats other than WAV are stored.
func TestUploadsOfOtherFormats(t *testing.T) {
	s := newServer(t)
	file := func(name string) []byte { return corpusFile(t, name) }
	form := func(name, kind, from string) option { return form(t, part{"f", name, kind, string(file(from))}) }
	tests := []struct {
		name string
		opts []option
		want string // codec and rate
	}{
		{"mu-law by its type", []option{body("audio/PCMU", file("speech.ulaw"))}, "mulaw 8000"},
		{"mu-law by its name", []option{body("", file("speech.ulaw")),
			header("X-Recording-File-Name", "/tmp/a.ul")}, "mulaw 8000"},
		{"mu-law in a form", []option{form("a.pcmu", "application/octet-stream", "speech.ulaw")}, "mulaw 8000"},
		{"mu-law in a form, by its type", []option{form("a", "audio/basic", "speech.ulaw")}, "mulaw 8000"},
		{"PCM by its name", []option{form("a.sln16", "", "speech.sln")}, "pcm_s16le 16000"},
		{"PCM by its type", []option{body("audio/L16; rate=8000", file("speech.sln"))}, "pcm_s16be 8000"},
		{"GSM", []option{form("a.gsm", "", "speech.gsm")}, "gsm 8000"},
		{"G.722", []option{form("a.g722", "", "speech.g722")}, "g722 16000"},
		{"MP3", []option{body("audio/mpeg", file("speech_cbr32.mp3"))}, "mp3 8000"},
		{"MP3 by another name", []option{form("a.wav", "audio/wav", "speech_vbr_notag.mp3")}, "mp3 8000"},
		{"Ogg", []option{body("application/octet-stream", file("speech.ogg"))}, "opus 48000"},
	}

	for _, tt := range tests {
		a := s.do(t, "POST", s.path("/Recordings.json"), append(tt.opts, s.basic)...)
		if a.StatusCode != http.StatusCreated {
			t.Errorf("%s = %d %s, want 201", tt.name, a.StatusCode, a.body)
			continue
		}
		media := read[map[string]any](t, a)["media"].(map[string]any)
		if got := fmt.Sprint(media["codec"], " ", media["sample_rate"]); got != tt.want {
			t.Errorf("%s is recognized as %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestUploadTwice(t *testing.T) {
	s := newServer(t)
	wav, other := corpusFile(t, speech), corpusFile(t, "canonical_44.wav")
	post := func(b []byte, opts ...option) answer {
		return s.do(t, "POST", s.path("/Recordings"), append(opts, s.basic, body("audio/wav", b))...)
	}
	sid := func(a answer) string { return read[struct{ Sid string }](t, a).Sid }

	first := post(wav, header("Idempotency-Key", "k"))
	again := post(wav, header("Idempotency-Key", "k"), header("X-Recording-CallSid", "c"))
	if first.StatusCode != 201 || again.StatusCode != 200 || sid(first) != sid(again) {
		t.Errorf("the same key and bytes = %d then %d, %s then %s, want 201, 200 and one recording",
			first.StatusCode, again.StatusCode, sid(first), sid(again))
	}

	conflict := post(other, header("Idempotency-Key", "k"))
	wantError(t, "the same key with other bytes", conflict, 409, 20409)
	for _, hash := range []string{"90ca927ecb0a6a97b0fd6d07f8b90ffebada16a846cdfa720b7e2f3e65aade32",
		"df27c7664c32ac0ec6b98155d268f616e902f84d733cb15581941a8b1e307866"} {
		if !strings.Contains(string(conflict.body), hash) {
			t.Errorf("the conflict %s does not name %s", conflict.body, hash)
		}
	}

	path := header("X-Recording-File-Name", "a.wav")
	if one, two := post(wav, path), post(wav, path); two.StatusCode != 200 || sid(one) != sid(two) {
		t.Errorf("the same file name and bytes = %d, want 200 and the same recording", two.StatusCode)
	}
}

func TestParallelUploadsHaveOneWinner(t *testing.T) {
	s := newServer(t)
	wav := corpusFile(t, speech)
	var wait sync.WaitGroup
	answers := make([]answer, 50)
	for i := range answers {
		wait.Go(func() {
			answers[i] = s.do(t, "POST", s.path("/Recordings"), s.basic, body("audio/wav", wav),
				header("Idempotency-Key", "k"))
		})
	}

	wait.Wait()
	sids, statuses := make(map[string]int), make(map[int]int)
	for _, a := range answers {
		sids[read[struct{ Sid string }](t, a).Sid]++
		statuses[a.StatusCode]++
	}

	if len(sids) != 1 || statuses[201] != 1 || statuses[200] != 49 {
		t.Errorf("%d recordings, statuses %v, want one recording, a 201 and 200s", len(sids), statuses)
	}
	if all := read[list](t, s.do(t, "GET", s.path("/Recordings"), s.basic)); len(all.Recordings) != 1 ||
		s.mediaFiles(t) != 2 {
		t.Errorf("%d rows and %d files, want one row, its media and its outline", len(all.Recordings),
			s.mediaFiles(t))
	}
}

func TestUploadsThatAreRefused(t *testing.T) {
	s := newServer(t)
	wav := corpusFile(t, speech)
	file := part{"x", "a.wav", "", string(wav)}
	raw := body("audio/wav", wav)
	large := body("audio/wav", append(bytes.Clone(wav), make([]byte, maxUpload)...))
	endless := func(r *http.Request) { // a body of unknown length
		r.Body, r.ContentLength = io.NopCloser(
			io.MultiReader(bytes.NewReader(wav), bytes.NewReader(make([]byte, maxUpload)))), -1
	}

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
		{"form cut short", "", []option{body("multipart/form-data; boundary=b",
			[]byte("--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a\"\r\n\r\nRIFF"))}, 400, 10000},
		{"form with a huge field", "", []option{form(
			t, part{name: "CallSid", value: strings.Repeat("x", 70_000)}, file)}, 413, 20413},
		{"form with an invalid field after the file", "",
			[]option{form(t, file, part{name: "Direction", value: "up"})}, 400, 10000},
		{"form with a repeated field", "",
			[]option{form(t, part{name: "To", value: "a"}, part{name: "To", value: "b"}, file)}, 400, 10000},
		{"too large, announced", "", []option{large}, 413, 20413},
		{"too large, not announced", "", []option{body("audio/wav", nil), endless}, 413, 20413},
		{"query", "Track=left", []option{raw}, 400, 10000},
		{"query, repeated", "From=a&From=b", []option{raw}, 400, 10000},
		{"query, unreadable", "From=%zz", []option{raw}, 400, 10000},
		{"query, not UTF-8", "From=%ff", []option{raw}, 400, 10000},
		{"query, control characters", "From=a%0d%0ab", []option{raw}, 400, 10000},
		{"query, long", "CallSid=" + strings.Repeat("x", 256), []option{raw}, 400, 10000},
		{"query, two parents", "CallSid=a&ConferenceSid=b", []option{raw}, 400, 10000},
		{"query, no date", "StartTime=soon", []option{raw}, 400, 10000},
		{"query, too early", "StartTime=-1", []option{raw}, 400, 10000},
		{"query, no number", "StartTime=NaN", []option{raw}, 400, 10000},
		{"query, too late", "StartTime=2030-01-01", []option{raw}, 400, 10000},
		{"query, no time for links", "MediaUrlTtl=0", []option{raw}, 400, 10000},
		{"query, no time for links of a live recording", "Status=in-progress&CallSid=c&MediaUrlTtl=soon", nil,
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
	if all := read[list](
		t, s.do(t, "GET", s.path("/Recordings?IncludeSoftDeleted=true"), s.basic),
	); len(all.Recordings) != 0 {
		t.Errorf("recordings left: %q", all.sids())
	}
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

	if all := read[list](t, s.do(t, "GET", s.path("/Recordings"), s.basic)); len(all.Recordings) != 0 {
		t.Errorf("recordings left: %q", all.sids())
	}
}

// eventually waits until so returns true.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-deadline:
			t.Fatalf("not true within a minute: %s", what)
		case <-tick.C:
		}
	}
}
