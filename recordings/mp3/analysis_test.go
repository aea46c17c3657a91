package mp3

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPolyphase compares the fast filterbank with its definition (ISO 11172-3, C.1.3).
func TestPolyphase(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var pcm [history + 576]float32
	for i := range pcm {
		pcm[i] = float32(random.IntN(65536) - 32768)
	}

	var got [32][18]float32
	polyphase(&pcm, &got)
	for slot := range 18 {
		newest := history + 32*slot + 31
		for subband := range 32 {
			want := 0.0
			for i := range 512 { // from the newest sample to the oldest
				weight := float64(window[min(i, 512-i)]) / 65536 / 32
				if i > 256 && i%64 != 0 {
					weight = -weight
				}
				phase := float64(2*subband+1) * float64(i%64-16) * math.Pi / 64
				want += weight * float64(pcm[newest-i]) * math.Cos(phase)
			}
			if subband&slot&1 == 1 {
				want = -want
			}
			if math.Abs(want-float64(got[subband][slot])) > 0.1 {
				t.Fatalf("subband %d of slot %d = %f, want %f", subband, slot, got[subband][slot], want)
			}
		}
	}
}

// TestMDCT compares the fast transforms with their definition.
func TestMDCT(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	var before, now, got [18]float32
	for i := range 18 {
		before[i], now[i] = random.Float32(), random.Float32()
	}

	block := slices.Concat(before[:], now[:])
	for _, kind := range []int{normal, start, stop} {
		mdct36(&before, &now, &foldings[kind], &got)
		for i := range 18 {
			want := 0.0
			for k := range 36 {
				phase := math.Pi / 72 * float64(2*k+1+18) * float64(2*i+1)
				want += longWindow(kind, k) * float64(block[k]) * math.Cos(phase) / 9
			}
			if math.Abs(want-float64(got[i])) > 1e-5 {
				t.Errorf("line %d with window %d = %f, want %f", i, kind, got[i], want)
			}
		}
	}

	mdct12(&before, &now, &got)
	for i := range 18 {
		shortBlock := block[6+6*(i%3):]
		want := 0.0
		for k := range 12 {
			weight := math.Sin(math.Pi / 12 * (float64(k) + 0.5))
			phase := math.Pi / 24 * float64(2*k+1+6) * float64(2*(i/3)+1)
			want += weight * float64(shortBlock[k]) * math.Cos(phase) / 3
		}
		if math.Abs(want-float64(got[i])) > 1e-5 {
			t.Errorf("line %d of short blocks = %f, want %f", i, got[i], want)
		}
	}
}

// TestWindowsFitTogether tries all patterns of attacks. A window that ends with a short slope must
// be followed by a window that begins with one.
func TestWindowsFitTogether(t *testing.T) {
	for pattern := range 1 << 12 {
		a := attacks{channels: 1, recent: 3}
		last := normal
		for n := int64(2); n < 12; n++ {
			for m := n - 2; m <= n+1; m++ { // each bit is an attack in a granule's first third
				g := a.granule(m)
				g.searched = true
				g.attacks[0] = thirds(pattern>>m&1) * firstThird
			}
			kind, err := a.kind(n, 0)
			if err != nil {
				t.Fatal(err)
			}
			endsShort := last == start || last == short
			beginsShort := kind == short || kind == stop
			if n > 2 && endsShort != beginsShort {
				t.Fatalf("attacks %012b: granule %d has the window %d after the window %d, want one that fits",
					pattern, n, kind, last)
			}
			last = kind
		}
	}
}

// TestExact compares cosPi and exp2 with the functions of package math.
func TestExact(t *testing.T) {
	for d := 1; d < 130; d++ {
		for n := -3 * d; n < 3*d; n++ {
			got, want := cosPi(n, d), math.Cos(math.Pi*float64(n)/float64(d))
			if math.Abs(got-want) > 1e-14 {
				t.Fatalf("cosPi(%d, %d) = %v, want %v", n, d, got, want)
			}
		}
	}
	for n := -500; n < 500; n++ {
		got, want := exp2(n), math.Pow(2, float64(n)/16)
		if math.Abs(got/want-1) > 1e-14 {
			t.Fatalf("exp2(%d) = %v, want %v", n, got, want)
		}
	}
}
