package audio

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/selvage/selvage/recordings/mp3/mp3test"
	"github.com/selvage/selvage/recordings/wav"
)

const corpus = "../testdata"

// An expectation is the expected result for a file in the corpus, and its expected facts.
type expectation struct {
	Result     string  `json:"result"` // ok | repair | err
	Absent     bool    `json:"may_accept_absent"`
	Codec      string  `json:"codec"`
	SampleRate int     `json:"sample_rate"`
	Channels   int     `json:"channels"`
	Bits       int     `json:"bits"`
	Duration   float64 `json:"duration_s"`
	Tolerance  float64 `json:"tolerance_s"`
}

func expectations(t testing.TB) map[string]expectation {
	t.Helper()
	var doc struct {
		Files map[string]expectation `json:"files"`
	}
	if err := json.Unmarshal(file(t, "expected.json"), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Files
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(corpus, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(b []byte, hints ...string) (wav.Facts, error) {
	return Parse(bytes.NewReader(b), int64(len(b)), hints...)
}

// refused reports whether an error is one of those that Parse returns for rejected files.
func refused(err error) bool {
	return errors.Is(err, ErrUnknown) || errors.Is(err, wav.ErrCodec) || errors.Is(err, wav.ErrBroken)
}

func TestCorpus(t *testing.T) {
	for name, want := range expectations(t) {
		got, err := parse(file(t, name), name)

		switch {
		case want.Result == "err" && !want.Absent:
			if !refused(err) {
				t.Errorf("Parse(%s) = %+v, %v, want an error", name, got, err)
			}
		case err != nil:
			t.Errorf("Parse(%s): %v, want %s", name, err, want.Result)
		case want.Absent:
			if got.Frames != 0 {
				t.Errorf("Parse(%s) = %d frames, want none", name, got.Frames)
			}
		default:
			t.Run(name, func(t *testing.T) { wantFacts(t, got, want) })
		}
	}
}

// wantFacts compares the facts of a file with the expected facts.
func wantFacts(t *testing.T, got wav.Facts, want expectation) {
	t.Helper()
	if got.Codec != want.Codec {
		t.Errorf("codec %s, want %s", got.Codec, want.Codec)
	}
	if got.SampleRate != want.SampleRate {
		t.Errorf("%d Hz, want %d", got.SampleRate, want.SampleRate)
	}
	if got.Channels != want.Channels || got.Bits != want.Bits {
		t.Errorf("%d channels of %d bits, want %d of %d", got.Channels, got.Bits, want.Channels, want.Bits)
	}
	tolerance := max(want.Tolerance, 1e-6)
	if seconds := got.Duration().Seconds(); math.Abs(seconds-want.Duration) > tolerance {
		t.Errorf("%v s long, want %v within %v", seconds, want.Duration, tolerance)
	}
	if repaired := len(got.Repairs) > 0; repaired != (want.Result == "repair") {
		t.Errorf("repairs %q, want verdict %s", got.Repairs, want.Result)
	}
}

// wantCodec checks the codec of a file. If want is "", the file must be rejected.
func wantCodec(t *testing.T, name, want string, b []byte, hints ...string) {
	t.Helper()
	got, err := parse(b, hints...)
	switch {
	case want == "" && !refused(err):
		t.Errorf("Parse of %s with hints %q = %q, %v, want it rejected", name, hints, got.Codec, err)
	case want != "" && (err != nil || got.Codec != want):
		t.Errorf("Parse of %s with hints %q = %q, %v, want %q", name, hints, got.Codec, err, want)
	}
}

func TestHints(t *testing.T) {
	speech := file(t, "speech.ulaw")
	tests := []struct {
		hints []string
		want  string // codec, or ""
	}{
		{nil, ""},
		{[]string{"call.wav", "audio/wav"}, ""},
		{[]string{"call.ulaw"}, "mulaw"},
		{[]string{"/var/spool/asterisk/monitor/call.PCMU"}, "mulaw"},
		{[]string{`C:\calls\call.al`}, "alaw"},
		{[]string{"call", "audio/PCMA"}, "alaw"},
		{[]string{"application/octet-stream", "call.sln16"}, "pcm_s16le"},
		{[]string{"audio/L16;rate=8000;channels=2", "call.ulaw"}, "pcm_s16be"},
		{[]string{"audio/L16", "call.ulaw"}, ""}, // the type must contain a rate
	}

	for _, tt := range tests {
		wantCodec(t, "speech", tt.want, speech, tt.hints...)
	}
}

func TestIsName(t *testing.T) {
	for _, name := range []string{"a.wav", "/x/a.WAV", "a.mp3", "a.opus", "a.sln16", "a.PCMU"} {
		if !IsName(name) {
			t.Errorf("IsName(%q) = false, want true", name)
		}
	}
	for _, name := range []string{"a", "", "wav", "ulaw", "a.txt", "a.wav.txt", "audio/basic", "a."} {
		if IsName(name) {
			t.Errorf("IsName(%q) = true, want false", name)
		}
	}
}

// TestBytesBeforeNames shows that the bytes of a file take precedence over its name.
func TestBytesBeforeNames(t *testing.T) {
	padding := strings.Repeat("<!-- padding -->\r\n", 100)
	page := []byte("  <!DOCTYPE html>\n<title>502 Bad Gateway</title>\n" + padding)
	tests := []struct {
		name string
		file []byte
		hint string
		want string // codec, or ""
	}{
		{"WAV", file(t, "canonical_44.wav"), "x.ulaw", "pcm_s16le"},
		{"broken WAV", file(t, "zero_rate.wav"), "x.ulaw", ""},
		{"MP3", file(t, "speech_cbr32.mp3"), "x.sln", "mp3"},
		{"MP3", file(t, "speech_cbr32.mp3"), "x.wav", "mp3"},
		{"Ogg", file(t, "speech.ogg"), "x.gsm", "opus"},
		{"page", page, "x.ulaw", ""},
		{"JSON", []byte(`{"error":"` + strings.Repeat("x", 1000) + `"}`), "audio/PCMU", ""},
		{"FLAC", []byte("fLaC" + strings.Repeat("\x00", 1000)), "x.ulaw", ""},
		{"MP4", []byte("\x00\x00\x00\x18ftypM4A " + strings.Repeat("\x00", 1000)), "x.ulaw", ""},
		{"quiet mu-law", []byte("{" + strings.Repeat("\xfb\x7b", 1000)), "x.ulaw", "mulaw"},
		{"quiet mu-law, all negative", bytes.Repeat([]byte("{"), 1000), "x.ulaw", "mulaw"},
		{"JSON in Greek", []byte(`[ {"σφάλμα": "` + strings.Repeat("ά", 1000) + `"}]`), "x.ulaw", ""},
		{"not GSM", file(t, "speech.ulaw"), "x.gsm", ""},
	}

	for _, tt := range tests {
		wantCodec(t, tt.name, tt.want, tt.file, tt.hint)
	}
}

func TestMP3(t *testing.T) {
	cbr := string(file(t, "speech_cbr32.mp3"))
	vbr := string(file(t, "speech_vbr_notag.mp3"))
	lying := string(mp3test.Lying(1000))
	zeros := func(n int) string { return strings.Repeat("\x00", n) }
	ape := "APETAGEX\xd0\x07\x00\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + zeros(8)
	id3v1 := "TAG" + zeros(125)

	framesOf := func(mp3 string) int64 {
		facts, err := parse([]byte(mp3))
		if err != nil || facts.Codec != "mp3" {
			t.Fatalf("Parse = %+v, %v, want an MP3", facts, err)
		}
		return facts.Frames
	}
	cbrFrames, vbrFrames := framesOf(cbr), framesOf(vbr)
	if cbrFrames != 45235 { // the number that lame reports
		t.Errorf("frames according to LAME's tag = %d, want 45235", cbrFrames)
	}

	claims := []byte(cbr)
	copy(claims[bytes.Index(claims, []byte("Info"))+8:], "\xff\xff\xff\xff")
	moreFrames := string(mp3test.Lying(100)[48:])
	tests := []struct {
		name    string
		file    string
		want    int64
		repairs int
	}{
		{"a tag that claims years", string(claims), cbrFrames, 0},
		{"tags around the frames", id3v2 + id3v2 + cbr + ape + id3v1, cbrFrames, 0},
		{"tags around the frames, no tag of LAME", id3v2 + vbr + "TAG" + strings.Repeat("x", 125), vbrFrames, 0},
		{"zeros before the first frame", zeros(2000) + vbr, vbrFrames, 0},
		{"truncated, so its tag is ignored", cbr[:288*40], 39*576 - (82*576 - cbrFrames), 0},
		{"bytes lost in the middle", vbr[:5000] + vbr[5100:], vbrFrames - 576, 1},
		{"a wrong tag", lying, 1000 * 576, 1},
		{"a wrong tag, and junk", lying + zeros(5000) + moreFrames, 1100 * 576, 1},
		{"a false end", vbr + zeros(1000), vbrFrames, 1},
	}

	for _, tt := range tests {
		facts, err := parse([]byte(tt.file))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if math.Abs(float64(facts.Frames-tt.want)) > 3*576 {
			t.Errorf("%s: %d frames, want about %d", tt.name, facts.Frames, tt.want)
		}
		if len(facts.Repairs) != tt.repairs {
			t.Errorf("%s: repairs %q, want %d", tt.name, facts.Repairs, tt.repairs)
		}
	}
}

// id3v2 is a tag at the start of an MP3.
var id3v2 = "ID3\x04\x00\x00\x00\x00\x02\x00" + strings.Repeat("\x00", 256)

func TestNotMP3(t *testing.T) {
	for name, b := range map[string]string{
		"junk":              strings.Repeat("\xff\xfb\x90\x00", 5000),
		"two frames of 900": string(file(t, "speech_vbr_notag.mp3")[:600]) + strings.Repeat("x", 5000),
		"only a tag":        id3v2,
		"too much junk":     string(mp3test.Lying(1000)) + strings.Repeat("\x00", 10_000),
	} {
		if facts, err := parse([]byte(b)); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %+v, %v, want %v", name, facts, err, ErrUnknown)
		}
	}
}

func TestOgg(t *testing.T) {
	ogg := file(t, "speech.ogg")
	whole, err := parse(ogg)
	if err != nil {
		t.Fatal(err)
	}
	cut, err := parse(ogg[:len(ogg)-1])
	if err != nil {
		t.Fatal(err)
	}
	if cut.Frames == 0 || cut.Frames >= whole.Frames {
		t.Errorf("an Ogg without its last byte has %d frames, want 1 to %d", cut.Frames, whole.Frames-1)
	}

	change := func(offset int, text string) []byte {
		b := bytes.Clone(ogg)
		copy(b[offset:], text)
		return b
	}
	lastPage := bytes.LastIndex(ogg, []byte("OggS"))
	for name, b := range map[string][]byte{
		"a different codec":  bytes.ReplaceAll(ogg, []byte("OpusHead"), []byte("Theora  ")),
		"no channels":        change(28+9, "\x00"),
		"an implausible end": change(lastPage+6, "\xff\xff\xff\xff\xff\xff\x00\x00"),
		"no complete page":   ogg[:30],
	} {
		wantCodec(t, name, "", b, "x.ulaw")
	}
}

type failing struct{ io.Reader }

func (f failing) ReadAt(p []byte, _ int64) (int, error) { return f.Read(p) }

func TestParseReturnsReadErrors(t *testing.T) {
	broken := errors.New("the disk is broken")
	if _, err := Parse(failing{iotest.ErrReader(broken)}, 1000, "x.ulaw"); !errors.Is(err, broken) {
		t.Errorf("Parse = %v, want %v", err, broken)
	}
}
