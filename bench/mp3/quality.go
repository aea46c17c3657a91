package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/selvage/selvage/recordings/mp3"
)

// compareQuality prints a table of our results and lame's, with a row for each material and sample
// rate.
func compareQuality(dir, only, options string) error {
	fmt.Println("| material | rate | kbit/s | segmental SNR dB, lame | log-spectral distance dB, lame | PESQ, lame |")
	fmt.Println("|---|--:|--:|--:|--:|--:|")
	for _, m := range materials {
		for _, rate := range allRates {
			if !strings.Contains(fmt.Sprint(m.name, rate), only) {
				continue
			}
			if err := compareOne(dir, m, rate, options); err != nil {
				return fmt.Errorf("%s at %d: %w", m.name, rate, err)
			}
		}
	}
	return nil
}

func compareOne(dir string, m material, rate int, options string) error {
	original, err := m.make(rate)
	if err != nil {
		return err
	}
	wav := filepath.Join(dir, "original.wav")
	if err := original.writeWAV(wav); err != nil {
		return err
	}

	s, err := mp3.New(original)
	if err != nil {
		return err
	}
	kbits := int(s.Size() * 8 * int64(rate) / original.Frames() / 1000)
	kbits = nearest(kbits)

	ours, err := encodeOurs(dir, wav)
	if err != nil {
		return err
	}
	theirs, err := encodeLame(dir, wav, rate, kbits, options)
	if err != nil {
		return err
	}

	a, b := measure(original, ours), measure(original, theirs)
	fmt.Printf("| %s | %d | %d | %.1f, %.1f | %.2f, %.2f | %s, %s |\n", m.name, rate, kbits, a.segmental,
		b.segmental, a.spectral, b.spectral,
		pesq(dir, original, ours, m.name), pesq(dir, original, theirs, m.name))
	return nil
}

// nearest returns the MP3 bit rate that is closest to a measured bit rate.
func nearest(kbits int) int {
	best := 0
	for _, k := range []int{32, 40, 48, 64, 96, 128} {
		if abs(k-kbits) < abs(best-kbits) {
			best = k
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

func encodeOurs(dir, wav string) (*clip, error) {
	name := filepath.Join(dir, "ours.mp3")
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := encodeFile(wav, f); err != nil {
		return nil, err
	}
	return decode(name)
}

func encodeLame(dir, wav string, rate, kbits int, options string) (*clip, error) {
	name := filepath.Join(dir, "lame.mp3")
	args := append([]string{"--quiet", "--cbr", "-b", fmt.Sprint(kbits), "--resample",
		fmt.Sprint(float64(rate) / 1000)}, strings.Fields(options)...)
	if out, err := exec.Command("lame", append(args, wav, name)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("lame: %w: %s", err, out)
	}
	return decode(name)
}

// decode decodes an MP3 with ffmpeg, which removes the delay and padding that the encoder added.
func decode(name string) (*clip, error) {
	out, err := exec.Command("ffprobe", "-v", "error", "-show_entries", "stream=sample_rate", "-of",
		"csv=p=0", name).Output()
	if err != nil {
		return nil, fmt.Errorf("ffprobe: %w", err)
	}
	rate := 0
	if _, err := fmt.Sscan(string(out), &rate); err != nil {
		return nil, err
	}
	return ffmpeg(rate, 1, "-i", name)
}

// pesq rates speech with the Python package pesq, which models a listener. It returns "–" if the
// package is missing, or if it cannot rate this material at this sample rate.
func pesq(dir string, original, decoded *clip, material string) string {
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	if material != "speech" || (original.rate != 8000 && original.rate != 16000) {
		return "–"
	}

	a, b := filepath.Join(dir, "a.wav"), filepath.Join(dir, "b.wav")
	if original.writeWAV(a) != nil || decoded.writeWAV(b) != nil {
		return "–"
	}

	mode := map[int]string{8000: "nb", 16000: "wb"}[original.rate]
	script := `import sys, pesq
from scipy.io import wavfile
(r, a), (_, b) = wavfile.read(sys.argv[1]), wavfile.read(sys.argv[2])
n = min(len(a), len(b))
print("%.3f" % pesq.pesq(r, a[:n], b[:n], sys.argv[3]))`
	out, err := exec.Command(python, "-c", script, a, b, mode).Output()
	if err != nil {
		return "–"
	}
	return string(bytes.TrimSpace(out))
}
