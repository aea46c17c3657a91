package laml_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/laml"
)

const ingestKey = "ik_0123456789abcdef"

// ingesting returns an option that adds an ingest key to the configuration. The key is valid until
// revoked is set.
func ingesting(revoked *atomic.Bool) func(*server, *recordings.Config, *laml.Config) {
	return func(s *server, _ *recordings.Config, c *laml.Config) {
		check := func() error {
			if revoked.Load() {
				return problem.NoSuch("ingest key")
			}
			return nil
		}
		c.IngestKey = func(_ *http.Request, key string) (string, func() error, error) {
			if key != ingestKey {
				return "", nil, problem.NoSuch("ingest key")
			}
			return s.project, check, check()
		}
	}
}

// raw sends a request from testdata byte for byte. It fills in the key, the file and the length of
// the body.
func (s *server) raw(t *testing.T, shape string, file []byte) (status int, got map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "ingest", shape))
	if err != nil {
		t.Fatal(err)
	}

	head, form, _ := strings.Cut(strings.ReplaceAll(string(text), "\n", "\r\n"), "\r\n\r\n")
	body := file
	if form != "" {
		body = []byte(strings.ReplaceAll(form, "{file}", string(file)))
	}
	if strings.Contains(head, "chunked") {
		var chunks bytes.Buffer
		for part := range slices.Chunk(body, 16<<10) {
			fmt.Fprintf(&chunks, "%x\r\n%s\r\n", len(part), part)
		}
		body = append(chunks.Bytes(), "0\r\n\r\n"...)
	}

	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	replace := strings.NewReplacer("{key}", ingestKey, "{length}", fmt.Sprint(len(body)))
	go func() {
		_, _ = io.WriteString(conn, replace.Replace(head)+"\r\n\r\n")
		_, _ = conn.Write(body) // after an error, the response shows what is missing
	}()

	from := bufio.NewReader(conn)
	res, err := http.ReadResponse(from, nil)
	if err == nil && res.StatusCode == http.StatusContinue {
		res, err = http.ReadResponse(from, nil)
	}
	if err != nil {
		t.Fatalf("%s: %v", shape, err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		t.Fatalf("%s = %d: %v", shape, res.StatusCode, err)
	}
	return res.StatusCode, got
}

// TestIngestShapes shows that requests are accepted exactly as switches send them, with each kind
// of storage. Repeating a request creates no second recording.
func TestIngestShapes(t *testing.T) {
	for where, s := range everywhere(t) {
		t.Run(where, func(t *testing.T) { s.testShapes(t) })
	}
}

func (s *server) testShapes(t *testing.T) {
	t.Helper()
	wav := corpusFile(t, speech)
	tests := []struct {
		shape string
		want  map[string]string // members of the document, formatted
	}{
		{"freeswitch_http_put.http", map[string]string{"call_sid": "6f1de2a4-0c5a-4b0c-8f57-3b9b1c7a9e10",
			"from": "+14155550134", "to": "1000", "direction": "inbound",
			"start_time": "Fri, 20 Nov 2026 10:11:12 +0000"}},
		{"freeswitch_octets.http", map[string]string{"call_sid": "two", "duration": "6"}},
		{"kazoo_put.http", map[string]string{"call_sid": "<nil>", "codec": "pcm_s16le"}},
		{"curl_chunked.http", map[string]string{"call_sid": "1763803200.42"}},
		{"curl_data.http", map[string]string{"call_sid": "five"}},
		{"rtpengine_notify.http", map[string]string{"call_sid": "a84b4c76e66710@pc33.example.com",
			"start_time": "Sat, 22 Nov 2025 09:20:00 +0000"}},
	}
	for _, tt := range tests {
		status, got := s.raw(t, tt.shape, wav)
		if status != http.StatusCreated || got["status"] != "completed" || got["bytes"] != float64(len(wav)) {
			t.Errorf("%s = %d %v, want 201", tt.shape, status, got)
			continue
		}
		if again, same := s.raw(t, tt.shape, wav); again != http.StatusOK || same["sid"] != got["sid"] {
			t.Errorf("%s again = %d %v, want 200 and the same Sid", tt.shape, again, same)
		}

		sid := fmt.Sprint(got["sid"])
		doc := read[map[string]any](t, s.do(t, "GET", s.path("/Recordings/"+sid+".json"), s.basic))
		for name, want := range tt.want {
			value, ok := doc[name]
			if !ok {
				value = doc["media"].(map[string]any)[name]
			}
			if fmt.Sprint(value) != want {
				t.Errorf("%s: %s = %v, want %s", tt.shape, name, value, want)
			}
		}
		if media := s.do(t, "GET", s.path("/Recordings/"+sid+".wav")); !bytes.Equal(media.body, wav) {
			t.Errorf("%s: the media has %d bytes and differs from the upload", tt.shape, len(media.body))
		}
	}
}

// put sends a file with the ingest key.
func (s *server) put(t *testing.T, path string, file []byte) answer {
	t.Helper()
	return s.do(t, "PUT", "/ingest/"+ingestKey+"/"+path, body("audio/wav", file))
}

// TestIngestOfCalls shows that two calls whose files have the same audio and name become two
// recordings. Deleting one recording does not affect the other.
func TestIngestOfCalls(t *testing.T) {
	s := newServer(t, ingesting(new(atomic.Bool)))
	wav := corpusFile(t, speech)
	sid := func(a answer) string { return read[struct{ Sid string }](t, a).Sid }
	one, two := s.put(t, "rec.wav?CallSid=1", wav), s.put(t, "rec.wav?CallSid=2", wav)
	if one.StatusCode != 201 || two.StatusCode != 201 || sid(one) == sid(two) {
		t.Fatalf("two calls = %d %s, %d %s, want two recordings", one.StatusCode, one.body, two.StatusCode, two.body)
	}
	s.do(t, "DELETE", s.path("/Recordings/"+sid(one)), s.basic)
	if media := s.do(t, "GET", s.path("/Recordings/"+sid(two)+".wav")); !bytes.Equal(media.body, wav) {
		t.Errorf("after the other was deleted, the media = %d with %d bytes, want the upload",
			media.StatusCode, len(media.body))
	}
	if a := s.put(t, "rec.wav?CallSid=1", wav); a.StatusCode != 201 || sid(a) == sid(one) {
		t.Errorf("the deleted recording again = %d %s, want a new one", a.StatusCode, a.body)
	}
}

// TestIngestRaces shows that only one of several concurrent identical uploads is stored. All of
// them get its Sid.
func TestIngestRaces(t *testing.T) {
	s := newServer(t, ingesting(new(atomic.Bool)))
	wav := corpusFile(t, speech)
	var wait sync.WaitGroup
	answers := make([]answer, 50)
	for i := range answers {
		wait.Go(func() { answers[i] = s.put(t, "a.wav?CallSid=c", wav) })
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
}

// TestIngestOfFaults shows that faulty requests from switches are either refused or create a
// recording, which is repaired or has the status absent. Refused requests store nothing.
func TestIngestOfFaults(t *testing.T) {
	s := newServer(t, ingesting(new(atomic.Bool)))
	wav := corpusFile(t, speech)
	status := func(file string, want int, is string) {
		a := s.put(t, file+"?CallSid="+file, corpusFile(t, file))
		if got := read[map[string]any](t, a); a.StatusCode != want || is != "" && got["status"] != is {
			t.Errorf("%s = %d %s, want %d %s", file, a.StatusCode, a.body, want, is)
		}
	}

	status("header_only_44.wav", 201, "absent")
	status("silence.wav", 201, "absent")
	status("sizes_node_wav_stream.wav", 201, "completed")
	status("speech_wav49.WAV", 201, "completed")
	status("speech_cbr32.mp3", 201, "completed")
	status("text_as_wav.wav", 415, "")
	status("zero_channels.wav", 400, "")

	before := s.mediaFiles(t)
	for path, want := range map[string]int{
		"a.wav?Direction=up": 400, "a.wav?From=a&From=b": 400, "a.wav?From=%zz": 400, "a%00.wav": 400,
		"a.wav?RecordingStatusCallback=https://example.com/": 400, "a.wav?SubscriberId=x": 400,
		"a.wav?RecordingSid=x": 400, strings.Repeat("a", 5000) + ".wav": 400,
	} {
		if a := s.put(t, path, wav); a.StatusCode != want {
			t.Errorf("PUT %.40s = %d %s, want %d", path, a.StatusCode, a.body, want)
		}
	}

	if a := s.put(t, "a.wav", nil); a.StatusCode != 400 {
		t.Errorf("an empty body = %d %s, want 400", a.StatusCode, a.body)
	}
	if a := s.put(t, "a.wav", append(bytes.Clone(wav), make([]byte, maxUpload)...)); a.StatusCode != 413 {
		t.Errorf("a large file = %d %s, want 413", a.StatusCode, a.body)
	}

	if after := s.mediaFiles(t); after != before {
		t.Errorf("refused uploads left %d files", after-before)
	}
}

// TestIngestRights shows that a request with an ingest key cannot set a callback, a subscriber or a
// Sid, wherever the request names it. A response does not reveal the digest of another file.
func TestIngestRights(t *testing.T) {
	s := newServer(t, ingesting(new(atomic.Bool)))
	wav := corpusFile(t, speech)
	before := s.mediaFiles(t)
	for _, name := range []string{"RecordingStatusCallback", "SubscriberId", "RecordingSid"} {
		for where, option := range map[string]func(*http.Request){
			"before the file": form(t, part{name, "", "", "https://example.com/"}, part{"x", "a.wav", "", string(wav)}),
			"after the file":  form(t, part{"x", "a.wav", "", string(wav)}, part{name, "", "", "https://example.com/"}),
		} {
			a := s.do(t, "POST", "/ingest/"+ingestKey+"/a.wav", option)
			if a.StatusCode != 400 || !bytes.Contains(a.body, []byte("API key")) {
				t.Errorf("%s %s = %d %s, want 400", name, where, a.StatusCode, a.body)
			}
		}
	}

	for _, name := range []string{"X-Recording-SubscriberId", "X-Recording-Sid"} {
		a := s.do(t, "PUT", "/ingest/"+ingestKey+"/a.wav", body("audio/wav", wav), header(name, "x"))
		if a.StatusCode != 400 {
			t.Errorf("the header %s = %d %s, want 400", name, a.StatusCode, a.body)
		}
	}

	if after := s.mediaFiles(t); after != before {
		t.Errorf("refused uploads left %d files", after-before)
	}

	kept := s.do(t, "POST", s.path("/Recordings"), s.basic, body("audio/wav", wav), header("Idempotency-Key", "k"))
	digest := read[map[string]any](t, kept)["sha256"]
	a := s.do(t, "PUT", "/ingest/"+ingestKey+"/b.wav", body("audio/wav", corpusFile(t, "silence.wav")),
		header("Idempotency-Key", "k"))
	if a.StatusCode != 409 || bytes.Contains(a.body, []byte(fmt.Sprint(digest))) {
		t.Errorf("another file for a used key = %d %s, want 409 without %v", a.StatusCode, a.body, digest)
	}
}

// TestIngestKeys shows that nothing is stored if the key is unknown, or is revoked during the
// upload. Other methods are refused.
func TestIngestKeys(t *testing.T) {
	var revoked atomic.Bool
	s := newServer(t, ingesting(&revoked))
	wav := corpusFile(t, speech)
	wantError(t, "an unknown key", s.do(t, "PUT", "/ingest/ik_x/a.wav", body("audio/wav", wav)), 404, 20404)
	get := s.do(t, "GET", "/ingest/"+ingestKey+"/a.wav")
	wantError(t, "GET", get, 405, 20405)
	if allow := get.Header.Get("Allow"); allow != "POST, PUT" {
		t.Errorf("Allow = %q, want POST, PUT", allow)
	}

	late := func(r *http.Request) { // revokes the key after the body was sent
		r.ContentLength = -1
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(wav), readerFunc(func([]byte) (int, error) {
			revoked.Store(true)
			return 0, io.EOF
		})))
	}
	wantError(t, "a key revoked during the upload",
		s.do(t, "PUT", "/ingest/"+ingestKey+"/a.wav", late), 404, 20404)
	wantError(t, "a revoked key", s.put(t, "a.wav", wav), 404, 20404)
	if all := read[list](t, s.do(t, "GET", s.path("/Recordings"), s.basic)); len(all.Recordings) != 0 {
		t.Errorf("%d recordings, want none", len(all.Recordings))
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
