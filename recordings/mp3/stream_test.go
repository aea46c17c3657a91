package mp3

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// eachFormat runs a test for each sample rate of Layer III and a few others, with one and with two
// channels.
func eachFormat(t *testing.T, test func(t *testing.T, rate, channels int)) {
	for _, rate := range []int{8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 6000, 7999, 96000} {
		for _, channels := range []int{1, 2} {
			t.Run(fmt.Sprintf("%d-%d", rate, channels), func(t *testing.T) { test(t, rate, channels) })
		}
	}
}

// TestRangesEqualTheWhole reads 200 random ranges of each format, from new streams and from streams
// that were at a different position.
func TestRangesEqualTheWhole(t *testing.T) {
	eachFormat(t, func(t *testing.T, rate, channels int) {
		src := makeClip(rate, channels, min(2*rate, 60000))
		whole := encode(t, src)
		random := rand.New(rand.NewPCG(1, 2))
		used := newStream(t, src)

		for i := range 200 {
			from := random.IntN(len(whole))
			length := min(1+random.IntN(2000), len(whole)-from)
			s := used
			if i%2 == 0 {
				s = newStream(t, src)
			}

			if _, err := s.Seek(int64(from), io.SeekStart); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, length)
			if _, err := io.ReadFull(s, got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, whole[from:from+length]) {
				t.Fatalf("bytes %d to %d differ from those of the whole", from, from+length)
			}
		}
	})
}
