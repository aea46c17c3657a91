package wav

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// An expectation is the expected result for a file in the corpus, and its expected facts.
type expectation struct {
	Result     string  `json:"result"` // ok | repair | err
	Absent     bool    `json:"may_accept_absent"`
	Headerless bool    `json:"headerless"`
	Codec      string  `json:"codec"`
	SampleRate int     `json:"sample_rate"`
	Channels   int     `json:"channels"`
	Bits       int     `json:"bits"`
	ValidBits  int     `json:"valid_bits"`
	Duration   float64 `json:"duration_s"`
	Tolerance  float64 `json:"tolerance_s"`
	Why        string  `json:"why"`
}

const corpus = "../testdata"

func expectations(t testing.TB) map[string]expectation {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(corpus, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Files map[string]expectation `json:"files"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Files
}

// isWAV reports whether an accepted file in the corpus is a RIFF file. Parse rejects raw audio, MP3
// and Ogg.
func (e expectation) isWAV() bool { return !e.Headerless && e.Codec != "mp3" && e.Codec != "opus" }

func TestParseCorpus(t *testing.T) {
	for name, want := range expectations(t) {
		t.Run(name, func(t *testing.T) {
			file, err := os.ReadFile(filepath.Join(corpus, name))
			if err != nil {
				t.Fatal(err)
			}

			isRefused := !want.isWAV()
			if want.Result == "err" {
				isRefused = !want.Absent
			}
			got, err := Parse(bytes.NewReader(file), int64(len(file)))
			if isRefused {
				if err == nil {
					t.Errorf("Parse = %+v, want an error: %s", got, want.Why)
				}
				return
			}
			if err != nil {
				t.Fatalf("Parse: %v, want %s", err, want.Result)
			}
			if want.Result == "err" {
				if got.Frames != 0 {
					t.Errorf("Parse = %d frames, want none", got.Frames)
				}
				return
			}
			wantFacts(t, got, want)
		})
	}
}

// wantFacts compares the facts of a file with the expected facts.
func wantFacts(t *testing.T, got Facts, want expectation) {
	t.Helper()
	if got.Codec != want.Codec {
		t.Errorf("codec %s, want %s", got.Codec, want.Codec)
	}
	if got.SampleRate != want.SampleRate {
		t.Errorf("%d Hz, want %d Hz", got.SampleRate, want.SampleRate)
	}
	if got.Channels != want.Channels || got.Bits != want.Bits {
		t.Errorf("%d channels of %d bits, want %d of %d", got.Channels, got.Bits, want.Channels, want.Bits)
	}
	if want.ValidBits != 0 && got.ValidBits != want.ValidBits {
		t.Errorf("%d valid bits, want %d", got.ValidBits, want.ValidBits)
	}
	tolerance := max(want.Tolerance, 1e-6)
	if seconds := got.Duration().Seconds(); math.Abs(seconds-want.Duration) > tolerance {
		t.Errorf("%v s long, want %v s ± %v s", seconds, want.Duration, tolerance)
	}
	if repaired := len(got.Repairs) > 0; repaired != (want.Result == "repair") {
		t.Errorf("repairs %q, want the result %q", got.Repairs, want.Result)
	}
}
