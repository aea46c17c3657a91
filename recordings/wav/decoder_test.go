package wav

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestDecoder shows that audio decodes to the same samples whether it comes in pieces of any size
// or as a whole file.
func TestDecoder(t *testing.T) {
	for codec, file := range map[string]string{"mulaw": "speech.ulaw", "alaw": "speech.ulaw", "g722": "speech.g722"} {
		raw, err := os.ReadFile(filepath.Join("..", "testdata", file))
		if err != nil {
			t.Fatal(err)
		}

		rate := 8000
		if codec == "g722" {
			rate = 16000
		}

		facts, err := Headerless(codec, rate, 1, int64(len(raw)))
		if err != nil {
			t.Fatal(err)
		}

		whole, err := Open(bytes.NewReader(raw), facts, nil)
		if err != nil {
			t.Fatal(err)
		}

		want := make([]int16, whole.Frames())
		if _, err := whole.ReadFrames(want, 0); err != nil {
			t.Fatal(err)
		}

		for _, size := range []int{1, 160, 161, 1000} {
			d, err := NewDecoder(codec)
			if err != nil {
				t.Fatal(err)
			}
			var got []int16
			for piece := range slices.Chunk(raw, size) {
				samples := make([]int16, d.Samples(len(piece)))
				d.Decode(samples, piece)
				got = append(got, samples...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s in pieces of %d bytes decodes to different samples than as a whole file", codec, size)
			}
		}
	}

	if _, err := NewDecoder("gsm"); !errors.Is(err, ErrCodec) {
		t.Errorf("NewDecoder(gsm): %v, want ErrCodec", err)
	}
}
