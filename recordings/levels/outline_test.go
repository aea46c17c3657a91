package levels_test

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

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
		low, high := i*128/200, (i+1)*128/200
		p := o.Data[4*i : 4*i+4]
		if int(p[0]) < low-1 || int(p[1]) > high+1 || int(p[2]) < -high-1 || int(p[3]) > -low+1 {
			t.Fatalf("pixel %d = %v, want the legs within %d and %d, and below zero", i, p, low, high)
		}
	}

	back, err := levels.ParseOutline(o.Marshal())
	if err != nil || !reflect.DeepEqual(back, o) {
		t.Errorf("ParseOutline of Marshal: %v, %d pixels, want no change", err, back.Length())
	}
	if got := o.Waves(); len(got) != 2 || len(got[0]) != 400 || got[0][399] < 0.98 || got[1][398] > -0.98 {
		t.Errorf("Waves = %d channels of %d, ending %v, %v, want 2 of 400, near 1 and -1",
			len(got), len(got[0]), got[0][399], got[1][398])
	}
}

func TestOutlineAsJSON(t *testing.T) {
	o := levels.Outline{Rate: 8000, Channels: 1, PerPixel: 400, Data: []int8{-128, 127, -1, 0}}
	b, err := json.Marshal(o)
	want := `{"version":2,"channels":1,"sample_rate":8000,"samples_per_pixel":400,"bits":8,"length":2,` +
		`"data":[-128,127,-1,0]}`
	if err != nil || string(b) != want {
		t.Errorf("JSON = %s, %v, want %s", b, err, want)
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
		s := o.Scale(per, ramp.Frames())
		if want := (80_000 + per - 1) / per; s.Length() != want || s.PerPixel != per {
			t.Errorf("Scale(%d) = %d pixels of %d, want %d", per, s.Length(), s.PerPixel, want)
		}
		last := len(s.Data) - 4
		if s.Data[last+1] != 127 || s.Data[last+2] != -127 {
			t.Errorf("Scale(%d) ends with %v, want full scale", per, s.Data[last:])
		}
	}
}

// TestOutlineOfDays shows that very long audio gets a coarser outline.
func TestOutlineOfDays(t *testing.T) {
	_, o := measure(t, endless{1})
	if o.PerPixel != 400*64 || cap(o.Data) > 600_000 {
		t.Errorf("pixels of %d frames, room for %d numbers, want 25,600 and at most 600,000", o.PerPixel, cap(o.Data))
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
		b := append([]byte{}, whole...)
		b[random.IntN(24)] ^= byte(1 + random.IntN(255))
		if got, err := levels.ParseOutline(b); err == nil && len(got.Data) != len(o.Data) {
			t.Fatalf("ParseOutline of a header %v = %d numbers, want as many as before", b[:24], len(got.Data))
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
		if err != nil || len(b) > 3<<20 || !json.Valid(b) {
			t.Errorf("the outline of %d channels is %d bytes of JSON, %v, want 3 MiB at most", channels, len(b), err)
		}
	}
}

// endless is a source that claims to have 200 hours but ends immediately.
type endless struct{ channels int }

func (endless) Rate() int                              { return 8000 }
func (e endless) Channels() int                        { return e.channels }
func (endless) Frames() int64                          { return 200 * 3600 * 8000 }
func (endless) ReadFrames([]int16, int64) (int, error) { return 0, io.EOF }
