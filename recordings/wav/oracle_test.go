package wav

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/servers"
)

// run returns the output of a command, so that tests can compare results with those of other
// programs.
func run(t testing.TB, command ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath(command[0]); err != nil {
		servers.Missing(t, "the command "+command[0])
	}
	c := exec.Command(command[0], command[1:]...)
	var complaints bytes.Buffer
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(command, " "), err, complaints.Bytes())
	}
	return out
}

// ffmpeg decodes a file with ffmpeg and returns its 16-bit samples.
func ffmpeg(t testing.TB, path string, raw ...string) []byte {
	t.Helper()
	args := append([]string{"ffmpeg", "-v", "error"}, raw...)
	return run(t, append(args, "-i", path, "-f", "s16le", "-c:a", "pcm_s16le", "-")...)
}

// sox decodes a file with sox and returns its 16-bit samples.
func sox(t testing.TB, path string, raw ...string) []byte {
	t.Helper()
	args := append([]string{"sox", "-D", "-V1"}, raw...)
	return run(t, append(args, path, "-t", "raw", "-e", "signed", "-b", "16", "-L", "-")...)
}

// signal returns a test signal for decoders. It contains the loudest and the quietest samples, and
// quick changes between them.
func signal(rate, channels int) []int16 {
	random := rand.New(rand.NewPCG(3, 4))
	var samples []int16
	for _, shape := range []func(i int) float64{
		func(int) float64 { return 0 },
		func(int) float64 { return 1 },
		func(int) float64 { return 2*random.Float64() - 1 },
		func(i int) float64 { return float64(i/20%2)*2 - 1 },
		func(i int) float64 { return float64(i%2)*2 - 1 },
		func(i int) float64 { return math.Sin(float64(i) * float64(i) / float64(rate)) },
		func(i int) float64 { return float64(1 - min(1, i%997)) },
		func(i int) float64 { return math.Sin(float64(i)/3) / 8192 },
	} {
		for i := range rate / 2 * channels {
			samples = append(samples, roundFloat(shape(i)))
		}
	}
	return samples
}

// pcmFile writes samples to a WAV file and returns its path.
func pcmFile(t testing.TB, samples []int16, rate, channels int) string {
	t.Helper()
	b := header(rate, channels, int64(len(samples)/channels))
	for _, s := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
	}
	return writeFile(t, "pcm.wav", b)
}

func writeFile(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// decoded returns all samples of a file on disk.
func decoded(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	facts, err := Parse(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		facts, err = ParseRaw(filepath.Ext(path), bytes.NewReader(b), int64(len(b)))
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}

	s, err := Open(bytes.NewReader(b), facts, nil)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return readView(t, s)[44:]
}

// wantSamples checks that the samples of another program, in want, begin with the samples in got.
// want may be a little longer, because some programs ignore the fact chunk.
func wantSamples(t *testing.T, name string, got, want []byte) {
	t.Helper()
	if len(got) > len(want) || len(want)-len(got) > 4*640 {
		t.Errorf("%s: %d samples, want %d", name, len(got)/2, len(want)/2)
	}
	for i := 0; i+1 < min(len(got), len(want)); i += 2 {
		g := int16(binary.LittleEndian.Uint16(got[i:]))
		w := int16(binary.LittleEndian.Uint16(want[i:]))
		if g != w {
			t.Errorf("%s: sample %d is %d, want %d", name, i/2, g, w)
			return
		}
	}
}

// TestDecodersAgree compares the decoders with other programs, sample by sample. If the programs
// disagree, the reference is the one that follows the specification:
//
//   - GSM: libgsm in sox, since ffmpeg's decoder does not saturate as ETS 300 961 requires.
//   - IMA ADPCM: sox, which truncates each part of a step.
//   - MS ADPCM: ffmpeg, which divides.
func TestDecodersAgree(t *testing.T) {
	tests := []struct {
		name, file     string
		rate, channels int
		judge          func(testing.TB, string, ...string) []byte
		encode         string
	}{
		{"GSM", "x.gsm", 8000, 1, sox, "sox IN OUT"},
		{"WAV49", "x.wav", 8000, 1, sox, "sox IN -e gsm OUT"},
		{"G.722", "x.g722", 16000, 1, ffmpeg, "ffmpeg -v error -i IN -c:a g722 OUT"},
		{"IMA ADPCM", "x.wav", 8000, 1, sox, "sox IN -e ima-adpcm OUT"},
		{"IMA ADPCM, stereo", "x.wav", 8000, 2, sox, "sox IN -e ima-adpcm OUT"},
		{"MS ADPCM", "x.wav", 8000, 1, ffmpeg, "sox IN -e ms-adpcm OUT"},
		{"MS ADPCM, stereo", "x.wav", 8000, 2, ffmpeg, "sox IN -e ms-adpcm OUT"},
		{"mu-law", "x.wav", 8000, 2, ffmpeg, "sox IN -e mu-law OUT"},
		{"A-law", "x.wav", 8000, 1, sox, "sox IN -e a-law OUT"},
		{"8 bits", "x.wav", 8000, 1, sox, "sox -D IN -b 8 OUT"},
		{"24 bits", "x.wav", 8000, 1, sox, "sox IN -b 24 OUT vol 0.7"},
		{"32 bits", "x.wav", 8000, 1, sox, "sox IN -b 32 OUT vol 0.7"},
		{"float", "x.wav", 8000, 1, ffmpeg, "sox IN -e float -b 32 OUT vol 0.7"},
		{"float of 64 bits", "x.wav", 8000, 1, ffmpeg, "sox IN -e float -b 64 OUT vol 0.7"},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := pcmFile(t, signal(tt.rate, tt.channels), tt.rate, tt.channels)
			out := filepath.Join(t.TempDir(), tt.file)
			command := strings.NewReplacer("IN", in, "OUT", out).Replace(tt.encode)
			run(t, strings.Fields(command)...)
			wantSamples(t, tt.name, decoded(t, out), tt.judge(t, out))
		})
	}
}

// TestDecodersAgreeOnNoise compares the decoders with other programs on input that no encoder would
// write.
func TestDecodersAgreeOnNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	noise := make([]byte, 66_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	path := writeFile(t, "x.g722", noise)
	wantSamples(t, "G.722", decoded(t, path), ffmpeg(t, path))

	for i := 0; i < len(noise); i += gsmBytes {
		noise[i] = noise[i]&15 | gsmMagic<<4
	}
	path = writeFile(t, "x.gsm", noise)
	wantSamples(t, "GSM", decoded(t, path), sox(t, path))
}

// TestCorpusAgrees compares the samples of files in the corpus with those of other programs.
func TestCorpusAgrees(t *testing.T) {
	tests := []struct {
		name  string
		judge func(testing.TB, string, ...string) []byte
		raw   string
	}{
		{"speech_alaw_8k.wav", ffmpeg, ""},
		{"speech_ulaw_8k.wav", ffmpeg, ""},
		{"speech_stereo_ulaw_8k.wav", sox, ""},
		{"speech_ima_8k.wav", sox, ""},
		{"speech_ms_adpcm_8k.wav", ffmpeg, ""},
		{"speech_wav49.WAV", ffmpeg, ""},
		{"speech.gsm", sox, ""},
		{"speech.g722", ffmpeg, ""},
		{"speech.ulaw", sox, "-r 8000 -c 1 -t ul"},
		{"speech.sln", sox, "-r 8000 -c 1 -e signed -b 16 -t raw"},
		{"extensible_mulaw.wav", ffmpeg, ""},
		{"pcm_u8_8k.wav", ffmpeg, ""},
		{"pcm_s24_16k.wav", sox, ""},
		{"float32_16k.wav", ffmpeg, ""},
		{"rf64_small.wav", ffmpeg, ""},
		{"rifx_big_endian.wav", sox, ""},
		{"four_channels.wav", ffmpeg, ""},
		{"bext_before_fmt.wav", ffmpeg, ""},
	}

	for _, tt := range tests {
		path := filepath.Join(corpus, tt.name)
		want := tt.judge(t, path, strings.Fields(tt.raw)...)
		wantSamples(t, tt.name, decoded(t, path), want)
	}
}

// TestOthersReadViews shows that other programs read views correctly.
func TestOthersReadViews(t *testing.T) {
	for name := range expectations(t) {
		s := open(t, name, nil)
		if s == nil || s.Frames() == 0 {
			continue
		}
		view := readView(t, s)
		path := writeFile(t, "view.wav", view)
		wantSamples(t, name, view[44:], sox(t, path))

		got := string(run(t, "soxi", path))
		for _, field := range []string{
			fmt.Sprintf("Channels       : %d\n", s.Channels()),
			fmt.Sprintf("Sample Rate    : %d\n", s.Rate()),
			fmt.Sprintf("= %d samples", s.Frames()),
			"16-bit Signed Integer PCM",
		} {
			if !strings.Contains(got, field) {
				t.Errorf("soxi of the view of %s: %q, want it to contain %q", name, got, field)
			}
		}
	}
}
