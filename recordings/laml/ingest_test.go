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

// requestOf returns the header and the body of a request from testdata. It fills in the key, the
// file and the length of the body.
func requestOf(t *testing.T, shape string, file []byte) (head string, body []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "ingest", shape))
	if err != nil {
		t.Fatal(err)
	}

	head, form, _ := strings.Cut(strings.ReplaceAll(string(text), "\n", "\r\n"), "\r\n\r\n")
	body = file
	if form != "" {
		body = []byte(strings.ReplaceAll(form, "{file}", string(file)))
	}
	if strings.Contains(head, "chunked") {
		var chunks bytes.Buffer
		for chunk := range slices.Chunk(body, 16<<10) {
			fmt.Fprintf(&chunks, "%x\r\n%s\r\n", len(chunk), chunk)
		}
		body = append(chunks.Bytes(), "0\r\n\r\n"...)
	}
	values := strings.NewReplacer("{key}", ingestKey, "{length}", fmt.Sprint(len(body)))
	return values.Replace(head) + "\r\n\r\n", body
}

// sendRaw sends a request from testdata byte for byte.
func (s *server) sendRaw(t *testing.T, shape string, file []byte) (status int, got map[string]any) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	head, body := requestOf(t, shape, file)
	go func() {
		_, _ = io.WriteString(conn, head)
		_, _ = conn.Write(body) // after an error, the response shows what is missing
	}()

	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, nil)
	if err == nil && res.StatusCode == http.StatusContinue {
		res, err = http.ReadResponse(reader, nil)
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
		want  map[string]any // members of the document
	}{
		{"freeswitch_http_put.http", map[string]any{
			"call_sid":   "6f1de2a4-0c5a-4b0c-8f57-3b9b1c7a9e10",
			"from":       "+14155550134",
			"to":         "1000",
			"direction":  "inbound",
			"start_time": "Fri, 20 Nov 2026 10:11:12 +0000",
		}},
		{"freeswitch_octets.http", map[string]any{"call_sid": "two", "duration": 6.0}},
		{"kazoo_put.http", map[string]any{"call_sid": nil, "codec": "pcm_s16le"}},
		{"curl_chunked.http", map[string]any{"call_sid": "1763803200.42"}},
		{"curl_data.http", map[string]any{"call_sid": "five"}},
		{"rtpengine_notify.http", map[string]any{
			"call_sid":   "a84b4c76e66710@pc33.example.com",
			"start_time": "Sat, 22 Nov 2025 09:20:00 +0000",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.shape, func(t *testing.T) {
			status, created := s.sendRaw(t, tt.shape, wav)
			if status != http.StatusCreated {
				t.Fatalf("status %d, want 201: %v", status, created)
			}
			if created["status"] != "completed" || created["bytes"] != float64(len(wav)) {
				t.Fatalf("the recording has %v bytes and is %v, want %d and completed",
					created["bytes"], created["status"], len(wav))
			}

			status, repeated := s.sendRaw(t, tt.shape, wav)
			if status != http.StatusOK {
				t.Errorf("status %d for the second request, want 200: %v", status, repeated)
			}
			if repeated["sid"] != created["sid"] {
				t.Errorf("the second request has the Sid %v, want %v", repeated["sid"], created["sid"])
			}

			path := s.path("/Recordings/" + fmt.Sprint(created["sid"]))
			doc := read[map[string]any](t, s.do(t, "GET", path+".json", s.basic))
			wantMembers(t, doc, tt.want)
			wantFile(t, "the media", s.do(t, "GET", path+".wav"), wav)
		})
	}
}

// put sends a file with the ingest key.
func (s *server) put(t *testing.T, path string, file []byte) answer {
	t.Helper()
	return s.do(t, "PUT", "/ingest/"+ingestKey+"/"+path, body("audio/wav", file))
}

// TestIngestOfCalls shows that two calls or conferences whose files have the same audio and name
// become two recordings. Deleting one recording does not affect the other.
func TestIngestOfCalls(t *testing.T) {
	s := newServer(t, ingesting(new(atomic.Bool)))
	wav := corpusFile(t, speech)
	create := func(path string) (sid string) {
		t.Helper()
		a := s.put(t, path, wav)
		if a.StatusCode != 201 {
			t.Fatalf("PUT %s = %d %s, want 201", path, a.StatusCode, a.body)
		}
		return read[struct{ Sid string }](t, a).Sid
	}

	one := create("rec.wav?CallSid=1")
	two := create("rec.wav?CallSid=2")
	if one == two {
		t.Fatalf("two calls have the Sid %s, want one each", one)
	}
	if create("rec.wav?ConferenceSid=1") == create("rec.wav?ConferenceSid=2") {
		t.Error("two conferences have the same recording, want one each")
	}
	s.do(t, "DELETE", s.path("/Recordings/"+one), s.basic)
	wantFile(t, "the second call after the deletion", s.do(t, "GET", s.path("/Recordings/"+two+".wav")), wav)
	if again := create("rec.wav?CallSid=1"); again == one {
		t.Errorf("the deleted recording has the Sid %s again, want a new one", again)
	}
}

// TestIngestRaces shows that only one of several concurrent identical uploads is stored. All
// responses contain its Sid.
func TestIngestRaces(t *testing.T) {
	s := newServer(t, ingesting(new(atomic.Bool)))
	wav := corpusFile(t, speech)
	wantOneWinner(t, func() answer { return s.put(t, "a.wav?CallSid=c", wav) })
}

// TestIngestOfFaults shows that faulty requests from switches are either refused or create a
// recording, which is repaired or has the status absent. Refused requests store nothing.
func TestIngestOfFaults(t *testing.T) {
	s := newServer(t, ingesting(new(atomic.Bool)))
	wav := corpusFile(t, speech)
	send := func(file string) answer { return s.put(t, file+"?CallSid="+file, corpusFile(t, file)) }

	for file, want := range map[string]string{
		"header_only_44.wav":        "absent",
		"silence.wav":               "absent",
		"sizes_node_wav_stream.wav": "completed",
		"speech_wav49.WAV":          "completed",
		"speech_cbr32.mp3":          "completed",
	} {
		a := send(file)
		wantStatus(t, file, a, 201)
		if got := read[struct{ Status string }](t, a).Status; got != want {
			t.Errorf("the recording of %s has the status %s, want %s", file, got, want)
		}
	}
	before := s.mediaFiles(t)
	wantStatus(t, "text_as_wav.wav", send("text_as_wav.wav"), 415)
	wantStatus(t, "zero_channels.wav", send("zero_channels.wav"), 400)

	bad := []string{
		"a.wav?Direction=up",
		"a.wav?From=a&From=b",
		"a.wav?From=%zz",
		"a%00.wav",
		"a.wav?RecordingStatusCallback=https://example.com/",
		"a.wav?SubscriberId=x",
		"a.wav?RecordingSid=x",
		strings.Repeat("a", 5000) + ".wav",
	}
	for _, path := range bad {
		if a := s.put(t, path, wav); a.StatusCode != 400 {
			t.Errorf("PUT %.40s = %d %s, want 400", path, a.StatusCode, a.body)
		}
	}

	wantStatus(t, "an empty body", s.put(t, "a.wav", nil), 400)
	tooLarge := append(bytes.Clone(wav), make([]byte, maxUpload)...)
	wantStatus(t, "a large file", s.put(t, "a.wav", tooLarge), 413)

	if after := s.mediaFiles(t); after != before {
		t.Errorf("refused uploads left %d files, want none", after-before)
	}
}

// TestIngestRights shows that a request with an ingest key cannot set a callback, a subscriber or a
// Sid, wherever the request names it. A response does not reveal the digest of another file.
func TestIngestRights(t *testing.T) {
	s := newServer(t, ingesting(new(atomic.Bool)))
	wav := corpusFile(t, speech)
	before := s.mediaFiles(t)
	file := part{name: "x", file: "a.wav", value: string(wav)}
	for _, name := range []string{"RecordingStatusCallback", "SubscriberId", "RecordingSid"} {
		field := part{name: name, value: "https://example.com/"}
		for where, send := range map[string]option{
			"before the file": form(t, field, file),
			"after the file":  form(t, file, field),
		} {
			a := s.do(t, "POST", "/ingest/"+ingestKey+"/a.wav", send)
			wantStatus(t, name+" "+where, a, 400)
			if !bytes.Contains(a.body, []byte("API key")) {
				t.Errorf("%s %s = %s, want an error that names the API key", name, where, a.body)
			}
		}
	}

	for _, name := range []string{"X-Recording-SubscriberId", "X-Recording-Sid"} {
		a := s.do(t, "PUT", "/ingest/"+ingestKey+"/a.wav", body("audio/wav", wav), header(name, "x"))
		wantStatus(t, "the header "+name, a, 400)
	}

	if after := s.mediaFiles(t); after != before {
		t.Errorf("refused uploads left %d files, want none", after-before)
	}

	kept := s.do(t, "POST", s.path("/Recordings"), s.basic, body("audio/wav", wav), header("Idempotency-Key", "k"))
	digest := read[map[string]any](t, kept)["sha256"]
	other := s.do(t, "PUT", "/ingest/"+ingestKey+"/b.wav",
		body("audio/wav", corpusFile(t, "silence.wav")), header("Idempotency-Key", "k"))
	wantStatus(t, "another file for a used key", other, 409)
	if bytes.Contains(other.body, []byte(fmt.Sprint(digest))) {
		t.Errorf("another file for a used key = %s, want an error without %v", other.body, digest)
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
	wantHeader(t, "GET", get.Header, "Allow", "POST, PUT")

	revoke := readerFunc(func([]byte) (int, error) {
		revoked.Store(true)
		return 0, io.EOF
	})
	revokeAfterBody := func(r *http.Request) {
		r.ContentLength = -1
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(wav), revoke))
	}
	late := s.do(t, "PUT", "/ingest/"+ingestKey+"/a.wav", revokeAfterBody)
	wantError(t, "a key revoked during the upload", late, 404, 20404)
	wantError(t, "a revoked key", s.put(t, "a.wav", wav), 404, 20404)

	stored := read[list](t, s.do(t, "GET", s.path("/Recordings"), s.basic))
	if n := len(stored.Recordings); n != 0 {
		t.Errorf("%d recordings, want none", n)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
