package laml_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"testing"
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
		content, err := w.CreatePart(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(content, p.value); err != nil {
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
	raw := []byte(wav)
	file := part{name: "x", file: "a.wav", value: wav}
	tests := []struct {
		name string
		opts []option
		want map[string]any // members of the document
	}{
		{
			name: "raw",
			opts: []option{body("audio/wav", raw)},
			want: map[string]any{"call_sid": nil, "duration": 6.0, "source": "StartCallRecordingApi"},
		},
		{
			name: "raw, without a type",
			opts: []option{body("", raw)},
		},
		{
			name: "raw, octets",
			opts: []option{body("application/octet-stream; x=y", raw)},
		},
		{
			name: "raw, headers",
			opts: []option{
				body("audio/x-wav", raw),
				header("X-Recording-CallSid", "c-1"),
				header("X-Recording-From", "+1555"),
				header("X-Recording-Start-Time", "Sat, 21 Nov 2026 09:00:00 +0000"),
				header("X-Recording-Direction", "outbound"),
			},
			want: map[string]any{
				"call_sid":   "c-1",
				"from":       "+1555",
				"direction":  "outbound",
				"start_time": "Sat, 21 Nov 2026 09:00:00 +0000",
				"end_time":   "Sat, 21 Nov 2026 09:00:06 +0000",
			},
		},
		{
			name: "form, file first",
			opts: []option{
				form(t, file, part{name: "CallSid", value: "c-2"}, part{name: "Track", value: "inbound"}),
			},
			want: map[string]any{"call_sid": "c-2", "track": "inbound"},
		},
		{
			name: "form, file last",
			opts: []option{
				form(t, part{name: "ConferenceSid", value: "r"}, part{name: "From", value: ""}, file),
			},
			want: map[string]any{"conference_sid": "r", "source": "StartConferenceRecording", "from": nil},
		},
		{
			name: "form, file by its type",
			opts: []option{form(t, part{name: "ngfile", kind: "audio/wav", value: wav})},
		},
		{
			name: "rtpengine",
			opts: []option{
				form(t, part{name: "ngfile", file: "abc-mix.wav", kind: "audio/x-wav", value: wav}),
				header("X-Recording-Call-ID", "f00@10.0.0.1"),
				header("X-Recording-Full-File-Name", "/var/spool/abc-mix.wav"),
				header("X-Recording-Call-Start-Time", "1795251600.250000"),
				header("X-Recording-File-Format", "wav"),
			},
			want: map[string]any{
				"call_sid":   "f00@10.0.0.1",
				"start_time": "Sat, 21 Nov 2026 09:00:00 +0000",
			},
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := s.do(t, "POST", s.path("/Recordings.json"), append(tt.opts, s.basic)...)
			if a.StatusCode != http.StatusCreated {
				t.Fatalf("upload = %d %s, want 201", a.StatusCode, a.body)
			}
			got := read[map[string]any](t, a)
			wantMembers(t, got, tt.want)
			media := s.do(t, "GET", s.path(fmt.Sprintf("/Recordings/%s.wav", got["sid"])))
			wantFile(t, "the media", media, raw)
		})
	}
}

// wantMembers checks members of the document of a recording, or of its media.
func wantMembers(t *testing.T, doc, want map[string]any) {
	t.Helper()
	media := doc["media"].(map[string]any)
	for name, value := range want {
		got, ok := doc[name]
		if !ok {
			got = media[name]
		}
		if got != value {
			t.Errorf("%s = %v, want %v", name, got, value)
		}
	}
}

// TestUploadsOfOtherFormats shows that audio without a header is recognized by its type or name.
// It also shows that formats other than WAV are stored.
func TestUploadsOfOtherFormats(t *testing.T) {
	s := newServer(t)
	file := func(name string) []byte { return corpusFile(t, name) }
	form := func(name, kind, from string) option {
		return form(t, part{name: "f", file: name, kind: kind, value: string(file(from))})
	}
	named := header("X-Recording-File-Name", "/tmp/a.ul")
	tests := []struct {
		name string
		opts []option
		want string // codec and rate
	}{
		{"mu-law by its type", []option{body("audio/PCMU", file("speech.ulaw"))}, "mulaw 8000"},
		{"mu-law by its name", []option{body("", file("speech.ulaw")), named}, "mulaw 8000"},
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

	key := header("Idempotency-Key", "k")
	first := post(wav, key)
	wantStatus(t, "the first upload with a key", first, 201)
	wantLive(t, "the same key and bytes", post(wav, key, header("X-Recording-CallSid", "c")), 200, sid(first))

	conflict := post(other, key)
	wantError(t, "the same key with other bytes", conflict, 409, 20409)
	for _, digest := range []string{
		"90ca927ecb0a6a97b0fd6d07f8b90ffebada16a846cdfa720b7e2f3e65aade32",
		"df27c7664c32ac0ec6b98155d268f616e902f84d733cb15581941a8b1e307866",
	} {
		if !strings.Contains(string(conflict.body), digest) {
			t.Errorf("the conflict is %s, want %s in it", conflict.body, digest)
		}
	}

	name := header("X-Recording-File-Name", "a.wav")
	byName := post(wav, name)
	wantLive(t, "the same file name and bytes", post(wav, name), 200, sid(byName))
}

func TestParallelUploadsHaveOneWinner(t *testing.T) {
	s := newServer(t)
	wav := corpusFile(t, speech)
	wantOneWinner(t, func() answer {
		return s.do(t, "POST", s.path("/Recordings"),
			s.basic, body("audio/wav", wav), header("Idempotency-Key", "k"))
	})

	stored := read[list](t, s.do(t, "GET", s.path("/Recordings"), s.basic))
	if n := len(stored.Recordings); n != 1 {
		t.Errorf("%d recordings, want 1", n)
	}
	if n := s.mediaFiles(t); n != 2 {
		t.Errorf("%d files, want the media and its outline", n)
	}
}

// wantOneWinner sends an upload 50 times concurrently. It checks that one of them creates a
// recording, and that all of them return it.
func wantOneWinner(t *testing.T, upload func() answer) {
	t.Helper()
	var uploads sync.WaitGroup
	answers := make([]answer, 50)
	for i := range answers {
		uploads.Go(func() { answers[i] = upload() })
	}
	uploads.Wait()

	sids := make(map[string]bool)
	statuses := make(map[int]int)
	for _, a := range answers {
		sids[read[struct{ Sid string }](t, a).Sid] = true
		statuses[a.StatusCode]++
	}
	if len(sids) != 1 {
		t.Errorf("%d recordings, want 1", len(sids))
	}
	if want := map[int]int{200: 49, 201: 1}; !maps.Equal(statuses, want) {
		t.Errorf("the numbers of responses by status are %v, want %v", statuses, want)
	}
}
