package laml_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
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
	mono := s.path("/Recordings/" + s.upload(t, speech, ""))
	both := s.path("/Recordings/" + s.upload(t, stereo, ""))
	_, whole := samples(t, s.do(t, "GET", both+".wav").body)
	for query, pick := range map[string]func(left, right int16) int16{
		"?RequestedChannels=1": func(left, right int16) int16 { return int16((int(left) + int(right) + 1) >> 1) },
		"?Channel=1":           func(left, _ int16) int16 { return left },
		"?Channel=2":           func(_, right int16) int16 { return right },
	} {
		channels, got := samples(t, s.do(t, "GET", both+".wav"+query).body)
		if channels != 1 || len(got) != len(whole)/2 {
			t.Fatalf("%s: %d channels and %d samples, want 1 and %d", query, channels, len(got), len(whole)/2)
		}
		for i := range got {
			if want := pick(whole[2*i], whole[2*i+1]); got[i] != want {
				t.Fatalf("%s: sample %d is %d, want %d", query, i, got[i], want)
			}
		}
	}

	unchanged := []string{
		".wav?RequestedChannels=1",
		".wav?Channel=1",
		"?Channel=1",
		".wav?Original=true",
		".wav?Download=true",
	}
	for _, end := range unchanged {
		wantFile(t, "GET "+end, s.do(t, "GET", mono+end), corpusFile(t, speech))
	}
	twoOfTwo := s.do(t, "GET", both+".wav?RequestedChannels=2")
	wantFile(t, "two channels of two", twoOfTwo, corpusFile(t, stereo))

	for _, ext := range []string{".wav", ".mp3", ""} {
		wantError(t, "two channels of a mono file", s.do(t, "GET", mono+ext+"?RequestedChannels=2"), 400, 16113)
		wantError(t, "the second channel of a mono file", s.do(t, "GET", mono+ext+"?Channel=2"), 400, 16113)
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

// TestViews shows that a file that is not 16-bit PCM, or has a wrong header, is served as PCM with a
// correct header. If the original is requested, the file is served unchanged.
func TestViews(t *testing.T) {
	s := newServer(t)
	files := []string{
		"truncated_mid_data.wav", "speech_ulaw_8k.wav", "speech_alaw_8k.wav", "speech_wav49.WAV",
		"speech_ima_8k.wav", "speech_ms_adpcm_8k.wav", "pcm_s24_16k.wav", "float32_16k.wav",
	}
	for _, name := range files {
		path := s.path("/Recordings/" + s.upload(t, name, ""))
		file := corpusFile(t, name)
		original := s.do(t, "GET", path+".wav?Original=true")
		wantFile(t, "the original of "+name, original, file)

		view := s.do(t, "GET", path+".wav")
		if bytes.Equal(view.body, file) {
			t.Errorf("the view of %s is the file, want a conversion", name)
		}
		if _, pcm := samples(t, view.body); len(pcm) == 0 {
			t.Errorf("the view of %s has no samples", name)
		}
		if n := view.ContentLength; n != int64(len(view.body)) {
			t.Errorf("the view of %s has Content-Length %d, want %d", name, n, len(view.body))
		}
		if etag := view.Header.Get("ETag"); etag == original.Header.Get("ETag") {
			t.Errorf("the view of %s has the ETag %s of the original, want its own", name, etag)
		}
		wantHeader(t, "the view of "+name, view.Header, "Content-Type", "audio/x-wav")

		wantRanges(t, s, path+".wav", view.body)
	}
}

// wantRanges fetches ranges of a file and compares them with whole, its content.
func wantRanges(t *testing.T, s *server, path string, whole []byte) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	etag := s.do(t, "HEAD", path).Header.Get("ETag")
	for range 25 {
		first := random.IntN(len(whole))
		last := first + random.IntN(len(whole)-first)
		name := fmt.Sprintf("bytes=%d-%d", first, last)
		a := s.do(t, "GET", path, header("Range", name), header("If-Range", etag))
		if a.StatusCode != 206 {
			t.Errorf("%s: %s = %d, want 206", path, name, a.StatusCode)
		}
		if !bytes.Equal(a.body, whole[first:last+1]) {
			t.Errorf("%s: %s = %d bytes, want those of the whole file", path, name, len(a.body))
		}
	}

	a := s.do(t, "GET", path, header("Range", "bytes=0-9,100-109"))
	if a.StatusCode != 206 {
		t.Errorf("%s: two ranges = %d, want 206", path, a.StatusCode)
	}
	if !bytes.Contains(a.body, whole[:10]) || !bytes.Contains(a.body, whole[100:110]) {
		t.Errorf("%s: two ranges = %d bytes, want both ranges in them", path, len(a.body))
	}
}

func TestMP3(t *testing.T) {
	s := newServer(t)
	sid := s.upload(t, speech, "")
	path := s.path("/Recordings/" + sid + ".mp3")
	whole := s.do(t, "GET", path)
	head := s.do(t, "HEAD", path, header("Accept-Encoding", "gzip"))
	for name, value := range map[string]string{
		"Content-Type":                "audio/mpeg",
		"Content-Length":              fmt.Sprint(len(whole.body)),
		"Content-Disposition":         `inline; filename="` + sid + `.mp3"`,
		"Accept-Ranges":               "bytes",
		"Cache-Control":               "public, max-age=300, must-revalidate",
		"X-Content-Type-Options":      "nosniff",
		"Content-Security-Policy":     "default-src 'none'; sandbox",
		"Access-Control-Allow-Origin": "*",
		"Content-Encoding":            "",
	} {
		wantHeader(t, "GET", whole.Header, name, value)
		wantHeader(t, "HEAD", head.Header, name, value)
	}

	if whole.StatusCode != 200 {
		t.Errorf("GET = %d, want 200", whole.StatusCode)
	}
	if len(whole.body) < 20_000 || http.DetectContentType(whole.body) != "audio/mpeg" {
		t.Errorf("GET = %d bytes, %.20q…, want an MP3 of six seconds", len(whole.body), whole.body)
	}
	wantRanges(t, s, path, whole.body)

	etag := whole.Header.Get("ETag")
	wantStatus(t, "If-None-Match", s.do(t, "GET", path, header("If-None-Match", etag)), 304)
	a := s.do(t, "GET", path, header("Range", "bytes=0-9"), header("If-Range", `"other"`))
	if a.StatusCode != 200 {
		t.Errorf("If-Range with a different ETag = %d, want 200", a.StatusCode)
	}
	wantFile(t, "If-Range with a different ETag", a, whole.body)

	download := s.do(t, "GET", path+"?Download=true")
	wantHeader(t, "Download", download.Header, "Content-Disposition", `attachment; filename="`+sid+`.mp3"`)
}

// TestMP3sHaveDifferentETags shows that each choice of channels has its own ETag.
func TestMP3sHaveDifferentETags(t *testing.T) {
	s := newServer(t)
	path := s.path("/Recordings/" + s.upload(t, stereo, "") + ".mp3")
	queries := make(map[string]string) // by ETag
	for _, query := range []string{"", "?RequestedChannels=1", "?Channel=1", "?Channel=2"} {
		a := s.do(t, "GET", path+query)
		if a.StatusCode != 200 {
			t.Errorf("MP3%s = %d, want 200", query, a.StatusCode)
		}
		etag := a.Header.Get("ETag")
		if other, ok := queries[etag]; ok {
			t.Errorf("MP3%s has the ETag of MP3%s, want its own", query, other)
		}
		queries[etag] = query
	}
}

// vorbis is an Ogg file whose headers say that it is Vorbis, at 8 kHz with one channel. Its page
// ends at position 8000.
var vorbis = slices.Concat([]byte("OggS\x00\x02\x40\x1f\x00\x00\x00\x00\x00\x00one!"), make([]byte, 8),
	[]byte("\x01\x1e\x01vorbis\x00\x00\x00\x00\x01\x40\x1f\x00\x00"), make([]byte, 14))

// TestOriginalsAreServed shows that originals are served unchanged. If a file cannot be converted,
// requests for other forms are refused.
func TestOriginalsAreServed(t *testing.T) {
	s := newServer(t)
	tests := []struct {
		name        string
		content     []byte
		uploadType  string
		servedType  string
		ext         string
		convertible bool
	}{
		{"MP3", corpusFile(t, "speech_cbr32.mp3"), "audio/mpeg", "audio/mpeg", ".mp3", true},
		{"Vorbis", vorbis, "audio/ogg", "audio/ogg", ".ogg", false},
		{"Opus", corpusFile(t, "speech.ogg"), "audio/ogg", "audio/ogg", ".ogg", true},
		{"µ-law", corpusFile(t, "speech.ulaw"), "audio/basic", "audio/PCMU; rate=8000; channels=1", ".ulaw", true},
		{"G.722", corpusFile(t, "speech.g722"), "audio/G722", "audio/G722", ".g722", true},
		{"GSM", corpusFile(t, "speech.gsm"), "audio/GSM", "audio/GSM", ".gsm", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			up := s.do(t, "POST", s.path("/Recordings"), s.basic, body(tt.uploadType, tt.content))
			if up.StatusCode != 201 {
				t.Fatalf("upload = %d %s, want 201", up.StatusCode, up.body)
			}
			sid := read[struct{ Sid string }](t, up).Sid
			path := s.path("/Recordings/" + sid)

			original := s.do(t, "GET", path+".wav?Original=true")
			if original.StatusCode != 200 {
				t.Errorf("the original = %d, want 200", original.StatusCode)
			}
			wantFile(t, "the original", original, tt.content)
			wantHeader(t, "the original", original.Header, "Content-Type", tt.servedType)
			wantHeader(t, "the original", original.Header, "Content-Disposition",
				`inline; filename="`+sid+tt.ext+`"`)

			for _, ext := range []string{"", ".wav", ".mp3"} {
				converted := s.do(t, "GET", path+ext)
				if !tt.convertible {
					wantError(t, "GET "+ext, converted, 406, 20406)
				} else if converted.StatusCode != 200 {
					t.Errorf("GET %q = %d, want 200", ext, converted.StatusCode)
				}
			}

			urls := read[links](t, s.do(t, "GET", path+".json", s.basic)).Media
			if urls.MediaURL == nil {
				t.Fatal("the recording has no media_url")
			}
			if a := s.do(t, "GET", pathOf(t, urls.MediaURL)); a.StatusCode != 200 {
				t.Errorf("the media_url %s = %d, want 200", *urls.MediaURL, a.StatusCode)
			}
			if !tt.convertible {
				if urls.MP3URL != nil {
					t.Errorf("the mp3_url is %s, want none", *urls.MP3URL)
				}
				return
			}
			if urls.MP3URL == nil {
				t.Fatal("the recording has no mp3_url")
			}
			if a := s.do(t, "GET", pathOf(t, urls.MP3URL)); a.StatusCode != 200 {
				t.Errorf("the mp3_url %s = %d, want 200", *urls.MP3URL, a.StatusCode)
			}
		})
	}

	whole := s.do(t, "GET", s.path("/Recordings/"+s.upload(t, "speech_cbr32.mp3", "")+".mp3"))
	wantFile(t, "an MP3 as MP3", whole, corpusFile(t, "speech_cbr32.mp3"))
}
