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
	Result       string  `json:"result"` // ok | repair | err
	Absent       bool    `json:"may_accept_absent"`
	Headerless   bool    `json:"headerless"`
	Codec        string  `json:"codec"`
	SampleRate   int     `json:"sample_rate"`
	Channels     int     `json:"channels"`
	Bits         int     `json:"bits"`
	ValidBits    int     `json:"valid_bits"`
	Duration     float64 `json:"duration_s"`
	Tolerance    float64 `json:"tolerance_s"`
	WhyItIsThere string  `json:"why"`
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

// isWAV reports whether an accepted file in the corpus is a RIFF file. This package rejects raw
// audio, MP3 and Ogg.
func (e expectation) isWAV() bool { return !e.Headerless && e.Codec != "mp3" && e.Codec != "opus" }

func TestParseCorpus(t *testing.T) {
	for name, want := range expectations(t) {
		t.Run(name, func(t *testing.T) {
			file, err := os.ReadFile(filepath.Join(corpus, name))
			if err != nil {
				t.Fatal(err)
			}

			got, err := Parse(bytes.NewReader(file), int64(len(file)))
			switch {
			case want.Result == "err" && want.Absent:
				if err != nil || got.Frames != 0 {
					t.Errorf("Parse(%s) = %d frames, %v, want no frames and no error", name, got.Frames, err)
				}
			case want.Result == "err", !want.isWAV():
				if err == nil {
					t.Errorf("Parse(%s) = %+v, want an error: %s", name, got, want.WhyItIsThere)
				}
			case err != nil:
				t.Errorf("Parse(%s): %v, want %s", name, err, want.Result)
			default:
				checkFacts(t, name, got, want)
			}
		})
	}
}

func checkFacts(t *testing.T, name string, got Facts, want expectation) {
	t.Helper()
	if got.Codec != want.Codec || got.SampleRate != want.SampleRate || got.Channels != want.Channels ||
		got.Bits != want.Bits {
		t.Errorf("Parse(%s) = %s, %d Hz, %d channels, %d bits, want %s, %d, %d, %d",
			name, got.Codec, got.SampleRate, got.Channels, got.Bits, want.Codec, want.SampleRate,
			want.Channels, want.Bits)
	}
	if want.ValidBits != 0 && got.ValidBits != want.ValidBits {
		t.Errorf("Parse(%s): valid bits %d, want %d", name, got.ValidBits, want.ValidBits)
	}

	if off := math.Abs(got.Duration().Seconds() - want.Duration); off > max(want.Tolerance, 1e-6) {
		t.Errorf("Parse(%s): %v long, want %v s", name, got.Duration(), want.Duration)
	}
	if repaired := len(got.Repairs) > 0; repaired != (want.Result == "repair") {
		t.Errorf("Parse(%s): repairs %q, want verdict %s", name, got.Repairs, want.Result)
	}
}
