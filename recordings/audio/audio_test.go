package audio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
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
			if got.Codec != want.Codec || got.SampleRate != want.SampleRate ||
				got.Channels != want.Channels || got.Bits != want.Bits {
				t.Errorf("Parse(%s) = %+v, want %+v", name, got, want)
			}
			if off := math.Abs(got.Duration().Seconds() - want.Duration); off > max(want.Tolerance, 1e-6) {
				t.Errorf("Parse(%s): %v long, want %v s", name, got.Duration(), want.Duration)
			}
			if repaired := len(got.Repairs) > 0; repaired != (want.Result == "repair") {
				t.Errorf("Parse(%s): repairs %q, want verdict %s", name, got.Repairs, want.Result)
			}
		}
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
		if f, err := parse(speech, tt.hints...); f.Codec != tt.want || err != nil && !refused(err) {
			t.Errorf("Parse with hints %q = %q, %v, want %q", tt.hints, f.Codec, err, tt.want)
		}
	}
}

func TestIsName(t *testing.T) {
	for name, want := range map[string]bool{
		"a.wav": true, "/x/a.WAV": true, "a.mp3": true, "a.opus": true, "a.sln16": true, "a.PCMU": true,
		"a": false, "": false, "wav": false, "ulaw": false, "a.txt": false, "a.wav.txt": false,
		"audio/basic": false, "a.": false,
	} {
		if got := IsName(name); got != want {
			t.Errorf("IsName(%q) = %v, want %v", name, got, want)
		}
	}
}

// TestBytesBeforeNames shows that the bytes of a file take precedence over its name.
func TestBytesBeforeNames(t *testing.T) {
	page := []byte("  <!DOCTYPE html>\n<title>502 Bad Gateway</title>\n" + strings.Repeat(
		"<!-- padding -->\r\n", 100))
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
		if f, err := parse(tt.file, tt.hint); f.Codec != tt.want || err != nil && !refused(err) {
			t.Errorf("Parse of %s named %s = %q, %v, want %q", tt.name, tt.hint, f.Codec, err, tt.want)
		}
	}
}

func TestMP3(t *testing.T) {
	cbr, vbr := file(t, "speech_cbr32.mp3"), file(t, "speech_vbr_notag.mp3")
	id3 := "ID3\x04\x00\x00\x00\x00\x02\x00" + strings.Repeat("\x00", 256)
	ape := "APETAGEX\xd0\x07\x00\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("\x00", 8)
	frames := func(b []byte) int64 {
		f, err := parse(b)
		if err != nil || f.Codec != "mp3" {
			t.Fatalf("Parse = %+v, %v, want an MP3", f, err)
		}
		return f.Frames
	}

	exact, walked := frames(cbr), frames(vbr)
	if exact != 45235 { // the number that lame reports
		t.Errorf("frames according to LAME's tag = %d, want 45235", exact)
	}

	claims := []byte(string(cbr))
	copy(claims[bytes.Index(claims, []byte("Info"))+8:], "\xff\xff\xff\xff")
	tests := []struct {
		name    string
		file    string
		want    int64
		repairs int
	}{
		{"a tag that claims years", string(claims), exact, 0},
		{"tags around it", id3 + id3 + string(cbr) + ape + "TAG" + strings.Repeat("\x00", 125), exact, 0},
		{"tags around it, no tag of LAME", id3 + string(vbr) + "TAG" + strings.Repeat("x", 125), walked, 0},
		{"zeros before it", strings.Repeat("\x00", 2000) + string(vbr), walked, 0},
		{"truncated, so its tag is ignored", string(cbr[:288*40]), 39*576 - (82*576 - exact), 0},
		{"bytes lost in the middle", string(vbr[:5000]) + string(vbr[5100:]), walked - 576, 1},
		{"a wrong tag", string(mp3test.Lying(1000)), 1000 * 576, 1},
		{"a wrong tag, and junk", string(mp3test.Lying(1000)) + strings.Repeat("\x00", 5000) +
			string(mp3test.Lying(100)[48:]), 1100 * 576, 1},
		{"a false end", string(vbr) + strings.Repeat("\x00", 1000), walked, 1},
	}

	for _, tt := range tests {
		f, err := parse([]byte(tt.file))
		if err != nil || math.Abs(float64(f.Frames-tt.want)) > 3*576 || len(f.Repairs) != tt.repairs {
			t.Errorf("%s: %d frames, repairs %q, %v, want %d, %d repairs", tt.name, f.Frames, f.Repairs, err,
				tt.want, tt.repairs)
		}
	}

	for name, b := range map[string]string{
		"junk":              strings.Repeat("\xff\xfb\x90\x00", 5000),
		"two frames of 900": string(vbr[:600]) + strings.Repeat("x", 5000),
		"only a tag":        id3,
		"too much junk":     string(mp3test.Lying(1000)) + strings.Repeat("\x00", 10_000),
	} {
		if f, err := parse([]byte(b)); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %+v, %v, want %v", name, f, err, ErrUnknown)
		}
	}
}

func TestOgg(t *testing.T) {
	ogg := file(t, "speech.ogg")
	last := bytes.LastIndex(ogg, []byte("OggS"))
	cut, err := parse(ogg[:len(ogg)-1])
	if whole, _ := parse(ogg); err != nil || cut.Frames == 0 || cut.Frames >= whole.Frames {
		t.Errorf("an Ogg without its last byte = %d frames, %v, want fewer than %d", cut.Frames, err, whole.Frames)
	}

	change := func(at int, b string) []byte { return append(append(bytes.Clone(ogg[:at]), b...), ogg[at+len(b):]...) }
	for name, b := range map[string][]byte{
		"a different codec":  bytes.ReplaceAll(ogg, []byte("OpusHead"), []byte("Theora  ")),
		"no channels":        change(28+9, "\x00"),
		"an implausible end": change(last+6, "\xff\xff\xff\xff\xff\xff\x00\x00"),
		"no complete page":   ogg[:30],
	} {
		if f, err := parse(b, "x.ulaw"); !refused(err) {
			t.Errorf("%s: %+v, %v, want an error", name, f, err)
		}
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

// A counted reader counts the bytes that are read.
type counted struct {
	io.ReaderAt
	bytes int
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	c.bytes += len(p)
	return c.ReaderAt.ReadAt(p, off)
}

// A same is a file of any size whose bytes are all equal.
type same byte

func (s same) ReadAt(p []byte, _ int64) (int, error) {
	for i := range p {
		p[i] = byte(s)
	}
	return len(p), nil
}

// TestRefusalsAreCheap shows that rejecting a file is quick, and that the memory needed does not
// depend on the file's size.
func TestRefusalsAreCheap(t *testing.T) {
	const most = 256 << 10
	try := func(name string, r io.ReaderAt, size int64) {
		counting := &counted{ReaderAt: r}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse(counting, size, name)
		runtime.ReadMemStats(&after)
		if !refused(err) {
			t.Errorf("%s: %v, want an error", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > most || counting.bytes > most {
			t.Errorf("%s: %d bytes were allocated and %d read, want at most %d", name, used, counting.bytes, most)
		}
	}

	for name, want := range expectations(t) {
		if b := file(t, name); want.Result == "err" && !want.Absent {
			try(name, bytes.NewReader(b), int64(len(b)))
		}
	}

	for b := range 256 {
		try(fmt.Sprintf("a terabyte of %#x", b), same(b), 1<<40)
	}
}

// TestJunkEndsTheCounting shows that a large file that only begins with frames is not an MP3.
func TestJunkEndsTheCounting(t *testing.T) {
	b := append(file(t, "speech_vbr_notag.mp3"), bytes.Repeat([]byte{0xFF}, 20<<20)...)
	r := &counted{ReaderAt: bytes.NewReader(b)}
	if f, err := Parse(r, int64(len(b))); !errors.Is(err, ErrUnknown) || r.bytes > len(b)/3 {
		t.Errorf("Parse = %+v, %v after %d of %d bytes, want %v after a quarter", f, err, r.bytes, len(b), ErrUnknown)
	}
}

// FuzzParse checks that Parse returns only documented errors, and does not read much more than the
// file's size.
func FuzzParse(f *testing.F) {
	for name := range expectations(f) {
		b := file(f, name)
		f.Add(b[:min(len(b), 4096)], name)
		f.Add(b[max(0, len(b)-4096):], name)
	}

	f.Add(bytes.Repeat([]byte{0xff, 0xfb, 0x90, 0x00}, 1<<14), "a.mp3") // a frame may begin at every fourth byte
	f.Add(bytes.Repeat([]byte{0xff}, 1<<16), "a.mp3")
	f.Add(append([]byte("ID3\x04\x00\x00\x7f\x7f\x7f\x7f"), make([]byte, 1<<16)...), "audio/mpeg")
	f.Add(bytes.Repeat([]byte("OggS\x00"), 1<<14), "a.ogg")

	// Parse reads the last 128 KiB of an Ogg file.
	bound := fuzzcost.Bound{CPU: 5 * time.Millisecond, CPUPerByte: 200 * time.Nanosecond, Heap: 1 << 20, PerByte: 16}
	f.Fuzz(func(t *testing.T, b []byte, hint string) {
		var r *counted
		var got wav.Facts
		var err error
		bound.Check(t, len(b), func() {
			r = &counted{ReaderAt: bytes.NewReader(b)}
			got, err = Parse(r, int64(len(b)), hint)
		})
		if r.bytes > 10*len(b)+1<<20 {
			t.Errorf("%d bytes were read of %d", r.bytes, len(b))
		}
		if err != nil {
			if !refused(err) {
				t.Errorf("an unexpected kind of error: %v", err)
			}
			return
		}
		if got.Codec == "" || got.Check() != nil || got.Frames < 0 || got.Duration() < 0 || got.Length < 0 ||
			got.Offset+got.Length > int64(len(b)) {
			t.Errorf("implausible facts: %+v", got)
		}
	})
}
