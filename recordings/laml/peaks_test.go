package laml_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/selvage/selvage/recordings"
)

// An outline is the document at .peaks.json.
type outline struct {
	Version    int         `json:"version"`
	Channels   int         `json:"channels"`
	SampleRate int         `json:"sample_rate"`
	PerPixel   int         `json:"samples_per_pixel"`
	Bits       int         `json:"bits"`
	Length     int         `json:"length"`
	Data       []int       `json:"data"`
	Peaks      [][]float64 `json:"peaks"`
	Duration   float64     `json:"duration"`
}

func TestPeaks(t *testing.T) {
	s := newServer(t)
	path := s.path("/Recordings/" + s.upload(t, "speech_stereo_8k.wav", "") + ".peaks.json")
	const frames = 45235
	tests := []struct {
		query    string
		perPixel int
	}{
		{"", 400},
		{"?format=audiowaveform", 400},
		{"?pixels=800", 400}, // finer than the measured outline
		{"?pixels=100", 453},
		{"?pixels=1", frames},
		{"?samples_per_pixel=400", 400},
		{"?samples_per_pixel=2048", 2048},
		{"?samples_per_pixel=2147483647", 2147483647},
	}

	for _, tt := range tests {
		a := s.do(t, "GET", path+tt.query)
		o := read[outline](t, a)
		length := (frames + tt.perPixel - 1) / tt.perPixel
		if o.Version != 2 || o.Channels != 2 || o.SampleRate != 8000 || o.Bits != 8 ||
			o.PerPixel != tt.perPixel || o.Length != length || len(o.Data) != 4*length {
			t.Errorf("%s = %d channels, %d pixels of %d, %d numbers, want %d of %d", tt.query, o.Channels,
				o.Length, o.PerPixel, len(o.Data), length, tt.perPixel)
		}
		if got := a.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: Content-Type = %q, want application/json", tt.query, got)
		}
	}

	w := read[outline](t, s.do(t, "GET", path+"?format=wavesurfer&pixels=50"))
	if len(w.Peaks) != 2 || len(w.Peaks[0]) != 100 || w.Duration != 5.654375 {
		t.Errorf("for wavesurfer: %d channels, %v s, want 2 of 100 numbers, 5.654375 s", len(w.Peaks), w.Duration)
	}

	for _, bad := range []string{"?pixels=0", "?pixels=x", "?pixels=-1", "?samples_per_pixel=399",
		"?samples_per_pixel=x", "?pixels=1&samples_per_pixel=400", "?format=dat", "?pixels=99999999999999999999"} {
		wantError(t, "GET "+bad, s.do(t, "GET", path+bad), 400, 10000)
	}
}

func TestPeaksAreKeptByCaches(t *testing.T) {
	s := newServer(t)
	path := s.path("/Recordings/" + s.upload(t, speech, "") + ".peaks.json")
	first := s.do(t, "GET", path)
	tag := first.Header.Get("ETag")
	if a := s.do(t, "GET", path, header("If-None-Match", tag)); a.StatusCode != 304 || tag == "" {
		t.Errorf("with its ETag %q = %d, want 304", tag, a.StatusCode)
	}
	if a := s.do(t, "GET", path+"?pixels=10", header("If-None-Match", tag)); a.StatusCode != 200 {
		t.Errorf("another outline with that ETag = %d, want 200", a.StatusCode)
	}
	if a := s.do(t, "HEAD", path); a.StatusCode != 200 ||
		a.Header.Get("Content-Length") != strconv.Itoa(len(first.body)) {
		t.Errorf("HEAD = %d, %s bytes, want %d", a.StatusCode, a.Header.Get("Content-Length"), len(first.body))
	}

	for name, want := range map[string]string{"Access-Control-Allow-Origin": "*",
		"Cache-Control": "public, max-age=300, must-revalidate", "X-Content-Type-Options": "nosniff"} {
		if got := first.Header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

func TestPeaksOfWhatHasNone(t *testing.T) {
	s := newServer(t)
	for sid, status := range map[string]int{
		"7f2c3a52-0b1d-4f6e-9a57-1c2d3e4f5a6b":   404,
		"..":                                     404,
		"":                                       404,
		s.upload(t, "header_only_44.wav", ""):    406,
		s.upload(t, speech, "") + ".peaks":       404,
		strings.ToUpper(s.upload(t, speech, "")): 404,
	} {
		if a := s.do(t, "GET", s.path("/Recordings/"+sid+".peaks.json")); a.StatusCode != status {
			t.Errorf("the outline of %q = %d, want %d", sid, a.StatusCode, status)
		}
	}
}

// TestPeaksByLink shows that a link to the media of a recording is also valid for its outline, but
// not for another recording's outline.
func TestPeaksByLink(t *testing.T) {
	s := newServer(t, signing(t))
	s.setMediaAuth(t, recordings.Signed)
	own, other := s.upload(t, speech, ""), s.upload(t, speech, "")
	doc := read[struct {
		Media struct {
			MP3URL   *string `json:"mp3_url"`
			PeaksURL *string `json:"peaks_url"`
		} `json:"media"`
	}](t, s.do(t, "GET", s.path("/Recordings/"+own+".json"), s.basic))
	peaks, mp3 := pathOf(t, doc.Media.PeaksURL), pathOf(t, doc.Media.MP3URL)

	for path, status := range map[string]int{
		peaks: 200,
		strings.Replace(mp3, ".mp3", ".peaks.json", 1): 200,
		strings.Replace(peaks, own, other, 1):          403,
		strings.Replace(peaks, "sig=", "sig=A", 1):     403,
		strings.Replace(peaks, "exp=", "exp=9", 1):     403,
		strings.Split(peaks, "?")[0]:                   401,
	} {
		if a := s.do(t, "GET", path); a.StatusCode != status {
			t.Errorf("GET %s = %d, want %d", path, a.StatusCode, status)
		}
	}
}

func TestListByFlag(t *testing.T) {
	s := newServer(t)
	s.upload(t, speech, "")
	silent := s.upload(t, "silence.wav", "")
	got := read[list](t, s.do(t, "GET", s.path("/Recordings?Flag=silent"), s.basic))
	if len(got.Recordings) != 1 || got.Recordings[0].Sid != silent {
		t.Errorf("Flag=silent returns %+v, want only %s", got.Recordings, silent)
	}
	wantError(t, "Flag=loud", s.do(t, "GET", s.path("/Recordings?Flag=loud"), s.basic), 400, 10000)
}
