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
	stereo := list{2, []int16{0, 0, 1, 2, 1, 3, -1, -2, -1, -4, 32767, 32767, -32768, -32768, 32767, -32768,
		-32768, -32767}}
	three := list{3, []int16{1, 1, 2, -1, -1, -3, 32767, 32767, 32767}}
	tests := []struct {
		name string
		got  Source
		want []int16
	}{
		{"mix of one", Mix(list{1, []int16{5, 6}}), []int16{5, 6}},
		{"mix of two", Mix(stereo), []int16{0, 2, 2, -1, -2, 32767, -32768, 0, -32767}},
		{"mix of three", Mix(three), []int16{1, -2, 32767}},
		{"first leg", Leg(stereo, 1), []int16{0, 1, 1, -1, -1, 32767, -32768, 32767, -32768}},
		{"second leg", Leg(stereo, 2), []int16{0, 2, 3, -2, -4, 32767, -32768, -32768, -32767}},
		{"only leg", Leg(list{1, []int16{5, 6}}, 1), []int16{5, 6}},
		{"third leg", Leg(three, 3), []int16{2, -3, 32767}},
	}

	for _, tt := range tests {
		got := make([]int16, len(tt.want)+3)
		n, err := tt.got.ReadFrames(got, 0)
		if !slices.Equal(got[:n], tt.want) || err != io.EOF || tt.got.Channels() != 1 ||
			tt.got.Frames() != int64(len(tt.want)) {
			t.Errorf("%s = %d, %v, %d channels, want %d", tt.name, got[:n], err, tt.got.Channels(), tt.want)
		}
		if n, err := tt.got.ReadFrames(got[:1], 1); n != 1 || err != nil || got[0] != tt.want[1] {
			t.Errorf("%s: second sample %d, %d, %v, want %d", tt.name, got[0], n, err, tt.want[1])
		}
	}
}
