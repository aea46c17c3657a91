package mp3

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestJudges checks MP3s of every format, including unusual lengths, with common programs. Each MP3
// must decode to exactly as many samples as were encoded, with similar values, and mp3val must find
// no fault.
func TestJudges(t *testing.T) {
	ffmpeg, lame := tool(t, "ffmpeg"), tool(t, "lame")
	mp3val, sox := tool(t, "mp3val"), tool(t, "sox")
	dir := t.TempDir()
	sources := map[string]*clip{} // by MP3 file name
	for _, f := range rates {
		granules := 1 + f.version/3
		for _, channels := range []int{1, 2} {
			for _, frames := range []int{1, 5 * 576 * granules, 5*576*granules + 1, 2 * f.rate} {
				name := filepath.Join(dir, fmt.Sprintf("%d-%d-%d.mp3", f.rate, channels, frames))
				sources[name] = makeClip(f.rate, channels, frames)
				if err := os.WriteFile(name, encode(t, sources[name]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}

	// Starting ffmpeg takes several times as long as decoding, so one process decodes all files.
	inputs, outputs := []string{"-v", "error", "-xerror", "-y"}, []string{}
	names := slices.Sorted(maps.Keys(sources))
	for i, name := range names {
		inputs = append(inputs, "-f", "mp3", "-i", name)
		outputs = append(outputs, "-map", strconv.Itoa(i), "-bitexact", name+".ffmpeg.wav")
	}
	command(t, ffmpeg, append(inputs, outputs...)...)

	for _, name := range names {
		compare(t, sources[name], name+".ffmpeg.wav")
		command(t, lame, "--quiet", "--decode", name, name+".lame.wav")
		compare(t, sources[name], name+".lame.wav")
		if out := command(t, mp3val, name); complains(out) {
			t.Errorf("mp3val finds a fault in %s: %s", name, out)
		}
		if out := command(t, sox, name, "-n", "stat"); strings.Contains(out, "WARN") {
			t.Errorf("sox warns about %s: %s", name, out)
		}
	}
}

// complains reports whether mp3val found a fault. It ignores the complaint that a file is short.
func complains(out string) bool {
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "Too few MPEG frames") &&
			(strings.Contains(line, "WARNING") || strings.Contains(line, "ERROR")) {
			return true
		}
	}
	return false
}

// command runs a program and returns its output. It fails the test if the program fails.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// compare compares the output of a decoder with the source.
func compare(t *testing.T, src *clip, decoded string) {
	t.Helper()
	data, err := os.ReadFile(decoded)
	if err != nil {
		t.Fatal(err)
	}
	data = data[44:]
	if got, want := len(data), 2*len(src.samples); got != want {
		t.Errorf("%s: %d bytes, want %d", decoded, got, want)
		return
	}

	signal, noise := 1.0, 0.0
	for i, want := range src.samples {
		d := float64(want) - float64(int16(binary.LittleEndian.Uint16(data[2*i:])))
		noise += d * d
		signal += float64(want) * float64(want)
	}

	// The clip is mostly white noise, coded with one to four bits per sample. Misplaced samples
	// would have a signal-to-noise ratio far below 3 dB.
	if snr := 10 * math.Log10(signal/noise); len(src.samples) > 5000 && snr < 3 {
		t.Errorf("%s: the signal-to-noise ratio is %.1f dB, want at least 3", decoded, snr)
	}
}
