package laml_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	path := s.path("/Recordings/" + s.upload(t, stereo, "") + ".peaks.json")
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
		got := read[outline](t, a)
		length := (frames + tt.perPixel - 1) / tt.perPixel // rounded up
		if n := len(got.Data); n != 4*length {
			t.Errorf("GET %s = %d numbers, want %d", tt.query, n, 4*length)
		}
		got.Data = nil
		want := outline{
			Version:    2,
			Channels:   2,
			SampleRate: 8000,
			PerPixel:   tt.perPixel,
			Bits:       8,
			Length:     length,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("GET %s differs (-want +got):\n%s", tt.query, diff)
		}
		wantHeader(t, "GET "+tt.query, a.Header, "Content-Type", "application/json")
	}

	bad := []string{
		"?pixels=0",
		"?pixels=x",
		"?pixels=-1",
		"?samples_per_pixel=399",
		"?samples_per_pixel=x",
		"?pixels=1&samples_per_pixel=400",
		"?format=dat",
		"?pixels=99999999999999999999",
	}
	for _, query := range bad {
		wantError(t, "GET "+query, s.do(t, "GET", path+query), 400, 10000)
	}
}

func TestPeaksForWavesurfer(t *testing.T) {
	s := newServer(t)
	path := s.path("/Recordings/" + s.upload(t, stereo, "") + ".peaks.json")
	got := read[outline](t, s.do(t, "GET", path+"?format=wavesurfer&pixels=50"))
	if len(got.Peaks) != 2 || len(got.Peaks[0]) != 100 {
		t.Errorf("%d channels, want 2 of 100 numbers each", len(got.Peaks))
	}
	if got.Duration != 5.654375 {
		t.Errorf("the duration is %v s, want 5.654375", got.Duration)
	}
}

func TestPeaksAreKeptByCaches(t *testing.T) {
	s := newServer(t)
	path := s.path("/Recordings/" + s.upload(t, speech, "") + ".peaks.json")
	first := s.do(t, "GET", path)
	tag := first.Header.Get("ETag")
	if tag == "" {
		t.Fatal("the outline has no ETag")
	}
	wantStatus(t, "the outline with its ETag", s.do(t, "GET", path, header("If-None-Match", tag)), 304)
	other := s.do(t, "GET", path+"?pixels=10", header("If-None-Match", tag))
	wantStatus(t, "another outline with that ETag", other, 200)

	head := s.do(t, "HEAD", path)
	wantStatus(t, "HEAD", head, 200)
	wantHeader(t, "HEAD", head.Header, "Content-Length", strconv.Itoa(len(first.body)))
	wantHeader(t, "GET", first.Header, "Access-Control-Allow-Origin", "*")
	wantHeader(t, "GET", first.Header, "Cache-Control", "public, max-age=300, must-revalidate")
	wantHeader(t, "GET", first.Header, "X-Content-Type-Options", "nosniff")
}

func TestNoPeaks(t *testing.T) {
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
	own := s.upload(t, speech, "")
	other := s.upload(t, speech, "")
	doc := read[struct {
		Media struct {
			MP3URL   *string `json:"mp3_url"`
			PeaksURL *string `json:"peaks_url"`
		} `json:"media"`
	}](t, s.do(t, "GET", s.path("/Recordings/"+own+".json"), s.basic))
	peaks := pathOf(t, doc.Media.PeaksURL)
	mp3 := pathOf(t, doc.Media.MP3URL)
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
	wantList(t, s, url.Values{"Flag": {"silent"}}, []string{silent})
	wantError(t, "Flag=loud", s.do(t, "GET", s.path("/Recordings?Flag=loud"), s.basic), 400, 10000)
}
