package wav

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestEncoderReference shows that the codewords of G.722 have the same hash as those of SpanDSP's
// encoder. The signal is quiet enough that no value has to be limited, because SpanDSP does not limit
// values.
func TestEncoderReference(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	samples := make([]int16, 64000)
	for i := range samples {
		switch i / 8000 {
		case 0:
		case 1:
			samples[i] = int16(8000 * math.Sin(float64(i)/9))
		case 2:
			samples[i] = int16(random.IntN(16000) - 8000)
		case 3:
			samples[i] = 12000
		case 4:
			samples[i] = int16((i/20%2)*12000 - 6000)
		case 5:
			samples[i] = int16(random.IntN(40) - 20)
		default:
			samples[i] = int16(12000*math.Sin(float64(i)*float64(i)/160000) + float64(random.IntN(2000)))
		}
	}

	const want = "44d3028b9a55f6d3ef1483fbaaba8f3324e740c0cbc0d6efc1ec455da4522bf9"
	if got := fmt.Sprintf("%x", sha256.Sum256(encoded(t, "g722", samples))); got != want {
		t.Errorf("the hash of the codewords is %s, want %s", got, want)
	}
}

// TestEncoderNearest shows that G.711 encodes each sample as the codeword with the nearest value.
func TestEncoderNearest(t *testing.T) {
	for codec, table := range map[string]*[256]int16{"mulaw": muLaw, "alaw": aLaw} {
		samples := make([]int16, 1<<16)
		for i := range samples {
			samples[i] = int16(i)
		}

		for i, code := range encoded(t, codec, samples) {
			best := 1 << 16
			for _, s := range table {
				best = min(best, abs(int(s)-int(samples[i])))
			}
			got := abs(int(table[code]) - int(samples[i]))
			if got > best+4 { // the two lowest bits of a sample are ignored
				t.Fatalf("%s: %d becomes %d, %d away; the nearest is %d away",
					codec, samples[i], table[code], got, best)
			}
		}
	}
}

// encoded encodes samples in pieces and returns the codewords.
func encoded(t *testing.T, codec string, samples []int16) []byte {
	t.Helper()
	e, err := NewEncoder(codec)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for len(samples) > 0 {
		n := min(len(samples), 320)
		piece := make([]byte, n/e.perByte)
		e.Encode(piece, samples)
		out, samples = append(out, piece...), samples[n:]
	}
	return out
}

// TestEncoderRoundTrip shows that encoding and decoding add little noise.
func TestEncoderRoundTrip(t *testing.T) {
	samples := make([]int16, 16000)
	for i := range samples {
		samples[i] = int16(8000 * math.Sin(2*math.Pi*440*float64(i)/16000))
	}

	for codec, delay := range map[string]int{"g722": 22, "mulaw": 0, "alaw": 0} {
		d, err := NewDecoder(codec)
		if err != nil {
			t.Fatal(err)
		}

		codes := encoded(t, codec, samples)
		back := make([]int16, d.Samples(len(codes)))
		d.Decode(back, codes)
		var noise, power float64
		for i := 1000; i+delay < len(back); i++ {
			difference := float64(back[i+delay]) - float64(samples[i])
			noise += difference * difference
			power += float64(samples[i]) * float64(samples[i])
		}

		if ratio := 10 * math.Log10(power/noise); ratio < 30 {
			t.Errorf("%s: the noise is %.1f dB below the signal, want at least 30 dB", codec, ratio)
		}
	}
}

// TestEncoderAllocations shows that encoding allocates no memory.
func TestEncoderAllocations(t *testing.T) {
	e, err := NewEncoder("g722")
	if err != nil {
		t.Fatal(err)
	}
	src, dst := make([]int16, 320), make([]byte, 160)
	if n := testing.AllocsPerRun(100, func() { e.Encode(dst, src) }); n != 0 {
		t.Errorf("encoding 20 ms allocates %v times, want none", n)
	}
}

// BenchmarkG722 measures encoding and decoding 20 ms of G.722.
func BenchmarkG722(b *testing.B) {
	samples := signal(16000, 1)[:16000]
	e, _ := NewEncoder("g722")
	d, _ := NewDecoder("g722")
	codes := make([]byte, 160)
	b.Run("encode", func(b *testing.B) {
		for i := range b.N {
			e.Encode(codes, samples[i%49*320:])
		}
	})
	back := make([]int16, 320)
	b.Run("decode", func(b *testing.B) {
		for range b.N {
			d.Decode(back, codes)
		}
	})
}
