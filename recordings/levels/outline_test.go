package levels_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/recordings/levels"
)

// ramp rises from silence to full scale within ten seconds. The second leg only has negative
// samples.
var ramp = sound{rate: 8000, channels: 2, seconds: 10, at: func(c int, t float64) float64 {
	return t / 10 * float64(1-2*c)
}}

func TestOutline(t *testing.T) {
	_, o := measure(t, ramp)
	if o.PerPixel != 400 || o.Length() != 200 {
		t.Fatalf("%d pixels of %d frames, want 200 of 400", o.Length(), o.PerPixel)
	}

	for i := range o.Length() {
		low, high := i*128/200-1, (i+1)*128/200+1
		pixel := o.Data[4*i : 4*i+4]
		if int(pixel[0]) < low || int(pixel[1]) > high {
			t.Fatalf("the first leg of pixel %d is %v, want %d to %d", i, pixel[:2], low, high)
		}
		if int(pixel[2]) < -high || int(pixel[3]) > -low {
			t.Fatalf("the second leg of pixel %d is %v, want %d to %d", i, pixel[2:], -high, -low)
		}
	}

	back, err := levels.ParseOutline(o.Marshal())
	if err != nil {
		t.Fatalf("ParseOutline of Marshal: %v", err)
	}
	if diff := cmp.Diff(o, back); diff != "" {
		t.Errorf("ParseOutline of Marshal differs (-want +got):\n%s", diff)
	}
}

func TestWaves(t *testing.T) {
	_, o := measure(t, ramp)
	waves := o.Waves()
	if len(waves) != 2 || len(waves[0]) != 400 {
		t.Fatalf("Waves = %d channels of %d values, want 2 of 400", len(waves), len(waves[0]))
	}
	if last := waves[0][399]; last < 0.98 {
		t.Errorf("the first wave ends with %v, want at least 0.98", last)
	}
	if last := waves[1][398]; last > -0.98 {
		t.Errorf("the second wave ends with %v, want at most -0.98", last)
	}
}

func TestOutlineAsJSON(t *testing.T) {
	o := levels.Outline{Rate: 8000, Channels: 1, PerPixel: 400, Data: []int8{-128, 127, -1, 0}}
	got, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":2,"channels":1,"sample_rate":8000,"samples_per_pixel":400,"bits":8,"length":2,` +
		`"data":[-128,127,-1,0]}`
	if string(got) != want {
		t.Errorf("JSON = %s, want %s", got, want)
	}
}

// TestScale shows that each pixel of a coarser outline includes all finer pixels that it overlaps.
func TestScale(t *testing.T) {
	_, o := measure(t, ramp)
	for _, per := range []int{1, 400} {
		if got := o.Scale(per, ramp.Frames()); !reflect.DeepEqual(got, o) {
			t.Errorf("Scale(%d) changes the outline", per)
		}
	}

	for _, per := range []int{401, 453, 799, 800, 801, 1000, 79_999, 79_601, 80_000, 1_000_000} {
		scaled := o.Scale(per, ramp.Frames())
		want := (80_000 + per - 1) / per // rounded up
		if scaled.Length() != want || scaled.PerPixel != per {
			t.Errorf("Scale(%d) = %d pixels of %d frames, want %d of %d",
				per, scaled.Length(), scaled.PerPixel, want, per)
		}
		last := scaled.Data[len(scaled.Data)-4:]
		if high, low := last[1], last[2]; high != 127 || low != -127 {
			t.Errorf("Scale(%d) ends between %d and %d, want 127 and -127", per, high, low)
		}
	}
}

// TestOutlineOfDays shows that very long audio gets a coarser outline.
func TestOutlineOfDays(t *testing.T) {
	_, o := measure(t, endless{1})
	if o.PerPixel != 25_600 {
		t.Errorf("a pixel has %d frames, want 25,600", o.PerPixel)
	}
	if cap(o.Data) > 600_000 {
		t.Errorf("the outline has room for %d numbers, want at most 600,000", cap(o.Data))
	}
}

func TestParseOutlineOfRubbish(t *testing.T) {
	_, o := measure(t, ramp)
	whole := o.Marshal()
	random := rand.New(rand.NewPCG(1, 1))
	for i := range len(whole) {
		if _, err := levels.ParseOutline(whole[:i]); err == nil {
			t.Fatalf("ParseOutline accepts %d bytes of %d", i, len(whole))
		}
	}

	for range 1000 {
		damaged := bytes.Clone(whole)
		damaged[random.IntN(24)] ^= byte(1 + random.IntN(255))
		got, err := levels.ParseOutline(damaged)
		if err != nil {
			continue
		}
		if len(got.Data) != len(o.Data) {
			t.Fatalf("ParseOutline of the header %v = %d numbers, want %d",
				damaged[:24], len(got.Data), len(o.Data))
		}
	}
}

// TestOutlinesAreBounded shows that outlines are small for audio of any length and number of
// channels, because every request encodes one.
func TestOutlinesAreBounded(t *testing.T) {
	for _, channels := range []int{1, 2, 32} {
		_, o := measure(t, endless{channels})
		for len(o.Data) < cap(o.Data) {
			o.Data = append(o.Data, -128)
		}
		b, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(b) {
			t.Errorf("the outline of %d channels is not valid JSON", channels)
		}
		if len(b) > 3<<20 {
			t.Errorf("the outline of %d channels is %d bytes of JSON, want at most 3 MiB", channels, len(b))
		}
	}
}

// endless is a source that claims to have 200 hours but ends immediately.
type endless struct{ channels int }

func (endless) Rate() int                              { return 8000 }
func (e endless) Channels() int                        { return e.channels }
func (endless) Frames() int64                          { return 200 * 3600 * 8000 }
func (endless) ReadFrames([]int16, int64) (int, error) { return 0, io.EOF }
