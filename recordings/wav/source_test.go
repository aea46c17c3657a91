package wav

import (
	"io"
	"slices"
	"testing"
)

// A list is a source of given samples.
type list struct {
	channels int
	samples  []int16
}

func (l list) Rate() int     { return 8000 }
func (l list) Channels() int { return l.channels }
func (l list) Frames() int64 { return int64(len(l.samples) / l.channels) }

func (l list) ReadFrames(dst []int16, at int64) (int, error) {
	n := copy(dst, l.samples[min(int(at)*l.channels, len(l.samples)):]) / l.channels
	if n*l.channels < len(dst) {
		return n, io.EOF
	}
	return n, nil
}

func TestMixAndLeg(t *testing.T) {
	one := list{1, []int16{5, 6}}
	two := list{2, []int16{
		0, 0,
		1, 2,
		1, 3,
		-1, -2,
		-1, -4,
		32767, 32767,
		-32768, -32768,
		32767, -32768,
		-32768, -32767,
	}}
	three := list{3, []int16{
		1, 1, 2,
		-1, -1, -3,
		32767, 32767, 32767,
	}}
	tests := []struct {
		name   string
		source Source
		want   []int16
	}{
		{"mix of one", Mix(one), []int16{5, 6}},
		{"mix of two", Mix(two), []int16{0, 2, 2, -1, -2, 32767, -32768, 0, -32767}},
		{"mix of three", Mix(three), []int16{1, -2, 32767}},
		{"first leg", Leg(two, 1), []int16{0, 1, 1, -1, -1, 32767, -32768, 32767, -32768}},
		{"second leg", Leg(two, 2), []int16{0, 2, 3, -2, -4, 32767, -32768, -32768, -32767}},
		{"only leg", Leg(one, 1), []int16{5, 6}},
		{"third leg", Leg(three, 3), []int16{2, -3, 32767}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if n := tt.source.Channels(); n != 1 {
				t.Errorf("%d channels, want 1", n)
			}
			if n := tt.source.Frames(); n != int64(len(tt.want)) {
				t.Errorf("%d frames, want %d", n, len(tt.want))
			}

			got := make([]int16, len(tt.want)+3)
			n, err := tt.source.ReadFrames(got, 0)
			if err != io.EOF {
				t.Errorf("reading beyond the end: %v, want EOF", err)
			}
			if !slices.Equal(got[:n], tt.want) {
				t.Errorf("the samples are %d, want %d", got[:n], tt.want)
			}

			n, err = tt.source.ReadFrames(got[:1], 1)
			if err != nil || n != 1 {
				t.Fatalf("reading one frame = %d, %v, want 1", n, err)
			}
			if got[0] != tt.want[1] {
				t.Errorf("the second sample is %d, want %d", got[0], tt.want[1])
			}
		})
	}
}
