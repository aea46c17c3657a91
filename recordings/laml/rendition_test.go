package laml_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/recordings/laml"
)

const stereo = "speech_stereo_8k.wav"

// samples returns the number of channels and the samples of a WAV file with a canonical header.
func samples(t *testing.T, b []byte) (channels int, pcm []int16) {
	t.Helper()
	if len(b) < 44 || string(b[:4]) != "RIFF" || string(b[36:40]) != "data" {
		t.Fatalf("%.60q is not a canonical WAV file", b)
	}
	pcm = make([]int16, (len(b)-44)/2)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(b[44+2*i:]))
	}
	return int(binary.LittleEndian.Uint16(b[22:])), pcm
}

func TestChannels(t *testing.T) {
	s := newServer(t)
	mono, both := s.path("/Recordings/"+s.upload(t, speech, "")), s.path("/Recordings/"+s.upload(t, stereo, ""))
	_, whole := samples(t, s.do(t, "GET", both+".wav").body)
	for end, pick := range map[string]func(l, r int16) int16{
		"?RequestedChannels=1": func(l, r int16) int16 { return int16((int(l) + int(r) + 1) >> 1) },
		"?Channel=1":           func(l, _ int16) int16 { return l },
		"?Channel=2":           func(_, r int16) int16 { return r },
	} {
		channels, got := samples(t, s.do(t, "GET", both+".wav"+end).body)
		if channels != 1 || len(got) != len(whole)/2 {
			t.Fatalf("%s: %d channels and %d samples, want 1 and %d", end, channels, len(got), len(whole)/2)
		}
		for i := range got {
			if want := pick(whole[2*i], whole[2*i+1]); got[i] != want {
				t.Fatalf("%s: sample %d is %d, want %d", end, i, got[i], want)
			}
		}
	}

	same := []string{mono + ".wav?RequestedChannels=1", mono + ".wav?Channel=1", mono + "?Channel=1",
		mono + ".wav?Original=true", mono + ".wav?Download=true"}
	for _, path := range same {
		if a := s.do(t, "GET", path); !bytes.Equal(a.body, corpusFile(t, speech)) {
			t.Errorf("GET %s = %d with %d bytes, want the file", path, a.StatusCode, len(a.body))
		}
	}

	if a := s.do(t, "GET", both+".wav?RequestedChannels=2"); !bytes.Equal(a.body, corpusFile(t, stereo)) {
		t.Errorf("two channels of two = %d with %d bytes, want the file", a.StatusCode, len(a.body))
	}

	for _, end := range []string{".wav", ".mp3", ""} {
		wantError(t, "two channels of one", s.do(t, "GET", mono+end+"?RequestedChannels=2"), 400, 16113)
		wantError(t, "the second of one", s.do(t, "GET", mono+end+"?Channel=2"), 400, 16113)
	}

	for _, query := range []string{
		"RequestedChannels=0", "RequestedChannels=3", "RequestedChannels=two", "Channel=-1",
		"Channel=1&Channel=1", "Channel=1&RequestedChannels=1",
		"Original=yes", "Original=true&Channel=1", "Download=1", "Download=%zz",
	} {
		wantError(t, query, s.do(t, "GET", both+".wav?"+query), 400, 10000)
	}

	wantError(t, "the original as MP3", s.do(t, "GET", both+".mp3?Original=true"), 400, 10000)
}

// TestViews shows that a file that is not PCM, or has a wrong header, is served as PCM with a
// correct header. If the original is requested, the file is served unchanged.
func TestViews(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"truncated_mid_data.wav", "speech_ulaw_8k.wav", "speech_alaw_8k.wav",
		"speech_wav49.WAV", "speech_ima_8k.wav", "speech_ms_adpcm_8k.wav", "pcm_s24_16k.wav", "float32_16k.wav"} {
		path := s.path("/Recordings/" + s.upload(t, name, ""))
		file := corpusFile(t, name)
		view, as := s.do(t, "GET", path+".wav"), s.do(t, "GET", path+".wav?Original=true")
		if !bytes.Equal(as.body, file) {
			t.Errorf("%s: the original has %d bytes, want %d", name, len(as.body), len(file))
		}
		if _, pcm := samples(t, view.body); len(pcm) == 0 || bytes.Equal(view.body, file) ||
			view.ContentLength != int64(len(view.body)) {
			t.Errorf("%s: %d bytes, but Content-Length is %d", name, len(view.body), view.ContentLength)
		}
		if view.Header.Get("ETag") == as.Header.Get("ETag") || view.Header.Get("Content-Type") != "audio/x-wav" {
			t.Errorf("%s: the view has the ETag %s (want its own) and the type %s", name, view.Header.Get("ETag"),
				view.Header.Get("Content-Type"))
		}

		wantRanges(t, s, path+".wav", view.body)
	}
}

// wantRanges fetches ranges of a file and compares them with whole, its content.
func wantRanges(t *testing.T, s *server, path string, whole []byte) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	etag := s.do(t, "HEAD", path).Header.Get("ETag")
	for range 25 {
		from := random.IntN(len(whole))
		to := from + random.IntN(len(whole)-from)
		a := s.do(t, "GET", path, header("Range", fmt.Sprintf("bytes=%d-%d", from, to)), header("If-Range", etag))
		if a.StatusCode != 206 || !bytes.Equal(a.body, whole[from:to+1]) {
			t.Errorf("%s: bytes %d to %d = %d with %d bytes, want those of the whole", path, from, to,
				a.StatusCode, len(a.body))
		}
	}

	a := s.do(t, "GET", path, header("Range", "bytes=0-9,100-109"))
	if !bytes.Contains(a.body, whole[:10]) || !bytes.Contains(a.body, whole[100:110]) || a.StatusCode != 206 {
		t.Errorf("%s: two ranges = %d with %d bytes, want 206 with both", path, a.StatusCode, len(a.body))
	}
}

func TestMP3(t *testing.T) {
	s := newServer(t)
	sid, both := s.upload(t, speech, ""), s.upload(t, stereo, "")
	path := s.path("/Recordings/" + sid + ".mp3")
	whole := s.do(t, "GET", path)
	want := map[string]string{
		"Content-Type": "audio/mpeg", "Content-Length": fmt.Sprint(len(whole.body)),
		"Content-Disposition": `inline; filename="` + sid + `.mp3"`,
		"Accept-Ranges":       "bytes", "Cache-Control": "public, max-age=300, must-revalidate",
		"X-Content-Type-Options":  "nosniff",
		"Content-Security-Policy": "default-src 'none'; sandbox", "Access-Control-Allow-Origin": "*",
		"Content-Encoding": "",
	}
	head := s.do(t, "HEAD", path, header("Accept-Encoding", "gzip"))

	for name, value := range want {
		if got := whole.Header.Get(name); got != value {
			t.Errorf("GET: %s = %q, want %q", name, got, value)
		}
		if got := head.Header.Get(name); got != value {
			t.Errorf("HEAD: %s = %q, want %q", name, got, value)
		}
	}

	if whole.StatusCode != 200 || len(whole.body) < 20_000 || http.DetectContentType(whole.body) != "audio/mpeg" {
		t.Errorf("GET = %d with %d bytes, %.20q…, want an MP3 of six seconds", whole.StatusCode,
			len(whole.body), whole.body)
	}

	wantRanges(t, s, path, whole.body)
	etag := whole.Header.Get("ETag")
	if a := s.do(t, "GET", path, header("If-None-Match", etag)); a.StatusCode != 304 {
		t.Errorf("If-None-Match = %d, want 304", a.StatusCode)
	}

	if a := s.do(
		t, "GET", path, header("Range", "bytes=0-9"), header("If-Range", `"other"`),
	); a.StatusCode != 200 || !bytes.Equal(a.body, whole.body) {
		t.Errorf("If-Range with a different ETag = %d with %d bytes, want the whole file", a.StatusCode, len(a.body))
	}

	if a := s.do(
		t, "GET", path+"?Download=true",
	); a.Header.Get("Content-Disposition") != `attachment; filename="`+sid+`.mp3"` {
		t.Errorf("Download: Content-Disposition = %q, want an attachment", a.Header.Get("Content-Disposition"))
	}

	tags := map[string]string{}
	for _, end := range []string{"", "?RequestedChannels=1", "?Channel=1", "?Channel=2"} {
		a := s.do(t, "GET", s.path("/Recordings/"+both+".mp3"+end))
		if other, ok := tags[a.Header.Get("ETag")]; ok || a.StatusCode != 200 {
			t.Errorf("MP3%s = %d with the ETag of MP3%s, want 200 and its own ETag", end, a.StatusCode, other)
		}
		tags[a.Header.Get("ETag")] = end
	}
}

// vorbis is an Ogg file whose headers say that it is Vorbis, at 8 kHz with one channel. Its page
// ends at position 8000.
var vorbis = slices.Concat([]byte("OggS\x00\x02\x40\x1f\x00\x00\x00\x00\x00\x00one!"), make([]byte, 8),
	[]byte("\x01\x1e\x01vorbis\x00\x00\x00\x00\x01\x40\x1f\x00\x00"), make([]byte, 14))

// TestOriginalsAreServed shows that files that cannot be converted are served unchanged. Requests
// for other forms are refused, with the reason.
func TestOriginalsAreServed(t *testing.T) {
	s := newServer(t)
	tests := []struct {
		file, kind, original, ext string
		wav, mp3                  int
	}{
		{"speech_cbr32.mp3", "audio/mpeg", "audio/mpeg", ".mp3", 200, 200},
		{"vorbis.ogg", "audio/ogg", "audio/ogg", ".ogg", 406, 406},
		{"speech.ogg", "audio/ogg", "audio/ogg", ".ogg", 200, 200},
		{"speech.ulaw", "audio/basic", "audio/PCMU; rate=8000; channels=1", ".ulaw", 200, 200},
		{"speech.g722", "audio/G722", "audio/G722", ".g722", 200, 200},
		{"speech.gsm", "audio/GSM", "audio/GSM", ".gsm", 200, 200},
	}

	for _, tt := range tests {
		content := vorbis
		if tt.file != "vorbis.ogg" {
			content = corpusFile(t, tt.file)
		}

		up := s.do(t, "POST", s.path("/Recordings"), s.basic, body(tt.kind, content))
		if up.StatusCode != 201 {
			t.Fatalf("%s = %d %s, want 201", tt.file, up.StatusCode, up.body)
		}

		sid := read[struct{ Sid string }](t, up).Sid
		path := s.path("/Recordings/" + sid)
		as := s.do(t, "GET", path+".wav?Original=true")
		if as.StatusCode != 200 || !bytes.Equal(as.body, content) ||
			as.Header.Get("Content-Type") != tt.original ||
			as.Header.Get("Content-Disposition") != `inline; filename="`+sid+tt.ext+`"` {
			t.Errorf("the original of %s = %d with %d bytes, %v", tt.file, as.StatusCode, len(as.body), as.Header)
		}

		for ext, status := range map[string]int{"": tt.wav, ".wav": tt.wav, ".mp3": tt.mp3} {
			a := s.do(t, "GET", path+ext)
			if a.StatusCode != status {
				t.Errorf("%s as %q = %d, want %d", tt.file, ext, a.StatusCode, status)
			}
			if status == 406 {
				wantError(t, tt.file, a, 406, 20406)
			}
		}

		urls := read[links](t, s.do(t, "GET", path+".json", s.basic)).Media
		for _, link := range []*string{urls.MediaURL, urls.MP3URL} {
			if link == nil {
				continue
			}
			if a := s.do(t, "GET", pathOf(t, link)); a.StatusCode != 200 {
				t.Errorf("the link %s of %s = %d, want 200", *link, tt.file, a.StatusCode)
			}
		}

		if urls.MediaURL == nil || (urls.MP3URL != nil) != (tt.mp3 == 200) {
			t.Errorf("the links of %s are %v and %v, want one for each form", tt.file, urls.MediaURL, urls.MP3URL)
		}
	}

	whole := s.do(t, "GET", s.path("/Recordings/"+s.upload(t, "speech_cbr32.mp3", "")+".mp3"))
	if !bytes.Equal(whole.body, corpusFile(t, "speech_cbr32.mp3")) {
		t.Errorf("an MP3 is returned with %d bytes, want it unchanged", len(whole.body))
	}
}

// A dropped is a ResponseWriter whose client disconnects after the first thousand bytes.
type dropped struct {
	*httptest.ResponseRecorder
	gone func()
}

func (w *dropped) Write(p []byte) (int, error) {
	n, err := w.ResponseRecorder.Write(p)
	if w.Body.Len() > 1000 {
		w.gone()
	}
	return n, err
}

// TestMP3EndsWithItsClient shows that encoding for a disconnected client ends after the current
// piece, so that another request gets a turn.
func TestMP3EndsWithItsClient(t *testing.T) {
	var api *laml.API
	s := newServer(t)
	api = laml.New(laml.Config{Recordings: s.rules, Encoders: 1})
	path := s.path("/Recordings/" + s.upload(t, speech, "") + ".mp3")

	for range 3 { // more than the number of turns
		ctx, gone := context.WithCancel(t.Context())
		w := &dropped{httptest.NewRecorder(), gone}
		api.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", path, nil))
		if n := w.Body.Len(); n < 1000 || n > 20_000 {
			t.Errorf("after the client disconnected, %d bytes were written, want 1,000 to 20,000", n)
		}
	}

	w := httptest.NewRecorder()
	api.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
	if n := w.Body.Len(); fmt.Sprint(n) != w.Header().Get("Content-Length") {
		t.Errorf("a client that stays gets %d bytes, want %s", n, w.Header().Get("Content-Length"))
	}
}

// A flushed is a ResponseWriter that records how much had been written at each flush.
type flushed struct {
	*httptest.ResponseRecorder
	at []int
}

func (w *flushed) Flush() { w.at = append(w.at, w.Body.Len()) }

func TestFirstFrameIsSentAtOnce(t *testing.T) {
	s := newServer(t)
	w := &flushed{ResponseRecorder: httptest.NewRecorder()}
	path := s.path("/Recordings/" + s.upload(t, speech, "") + ".mp3")
	laml.New(laml.Config{Recordings: s.rules}).Handler().ServeHTTP(
		w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
	if len(w.at) != 1 || w.at[0] == 0 || w.at[0] > 1000 {
		t.Errorf("flushed at %v bytes, want once, after the first frame", w.at)
	}
}

// TestOffload shows that if the reverse proxy sends the file, the response has no body, but has the
// headers that describe the file.
func TestOffload(t *testing.T) {
	s := newServer(t)
	mono, both := s.upload(t, speech, ""), s.upload(t, stereo, "")
	api := laml.New(laml.Config{Recordings: s.rules, Offload: func(key string) (string, string) {
		return "X-Accel-Redirect", "/files/" + key
	}})
	get := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), method, s.path("/Recordings/"+path), http.NoBody)
		r.Header.Set("Range", "bytes=0-9")
		api.Handler().ServeHTTP(w, r)
		return w
	}

	for _, path := range []string{mono, mono + ".wav", both + ".wav", both + ".wav?Original=true"} {
		for _, method := range []string{"GET", "HEAD"} {
			w := get(method, path)
			if to := w.Header().Get("X-Accel-Redirect"); w.Code != 200 || w.Body.Len() != 0 ||
				!strings.HasPrefix(to, "/files/0") || w.Header().Get("ETag") != "" {
				t.Errorf("%s %s = %d with %d bytes, to %q, want no body", method, path, w.Code, w.Body.Len(), to)
			}
			if w.Header().Get("Content-Security-Policy") == "" || w.Header().Get("Content-Type") != "audio/x-wav" {
				t.Errorf("%s %s has the headers %v, want a policy and audio/x-wav", method, path, w.Header())
			}
		}
	}

	for _, path := range []string{mono + ".mp3", both + ".wav?Channel=1", mono + "0.wav"} {
		w := get("GET", path)
		if to := w.Header().Get("X-Accel-Redirect"); to != "" || w.Body.Len() == 0 {
			t.Errorf("GET %s = %d with %d bytes, to %q, want no offload", path, w.Code, w.Body.Len(), to)
		}
	}

	if n, err := io.Copy(io.Discard, get("GET", mono+"0.wav").Body); err != nil || n == 0 {
		t.Errorf("the error for an unknown recording has %d bytes, %v, want a body", n, err)
	}
}
