package record

import (
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
)

// TestRenderCodecs shows that each side's speech is rendered intact and at the right time, for
// every codec and kind of network.
func TestRenderCodecs(t *testing.T) {
	const seconds = 20
	alice, bob := voice(1, seconds), voice(2, seconds)
	tests := []struct {
		name        string
		left, right stream
		rate        int
	}{
		{"Opus", stream{codec: "opus"}, stream{codec: "opus"}, 16000},
		{"Opus at a high rate", stream{codec: "celt"}, stream{codec: "opus"}, 16000},
		{"G.722", stream{codec: "G722"}, stream{codec: "G722"}, 16000},
		{"G.711", stream{codec: "PCMU"}, stream{codec: "PCMA"}, 8000},
		{"Opus and G.711", stream{codec: "opus"}, stream{codec: "PCMU"}, 16000},

		{
			name:  "loss, jitter, reordering, duplicates",
			left:  stream{codec: "opus", loss: 0.03, jitter: 30 * time.Millisecond, dup: 0.02},
			right: stream{codec: "PCMU", loss: 0.03, jitter: 30 * time.Millisecond, dup: 0.02},
			rate:  16000,
		},
		{
			name:  "numbers and timestamps wrap",
			left:  stream{codec: "opus", first: 1<<32 - 48000*7, seq: 65535 - 350, jitter: 20 * time.Millisecond},
			right: stream{codec: "G722", first: 1<<32 - 8000*7, seq: 65535 - 350},
			rate:  16000,
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.left.samples = alice
			tt.right.samples = bob
			tt.right.seed = 1
			p := spoolOf(t, nil, tt.left.packets(t, calls.CallerSide), tt.right.packets(t, calls.CalleeSide))
			left, right, rate := rendered(t, p)
			if rate != tt.rate {
				t.Errorf("the rate is %d, want %d", rate, tt.rate)
			}
			length := time.Duration(len(left)) * time.Second / time.Duration(rate)
			if abs(length-seconds*time.Second) > 200*time.Millisecond {
				t.Errorf("the length is %v, want %ds", length, seconds)
			}

			checkVoice(t, "left", left, rate, alice, 100*time.Millisecond)
			checkVoice(t, "right", right, rate, bob, 100*time.Millisecond)
		})
	}
}

// TestInterruptions shows that speech after an interruption is in the right place, no matter how
// the sender changes its timestamps. The interruption itself is silent.
func TestInterruptions(t *testing.T) {
	const from, to = 5 * time.Second, 8 * time.Second
	const packets = uint16((to - from) / (20 * time.Millisecond))
	changes := map[string]func(p *sent){
		"silence, and timestamps go on": func(*sent) {},
		"mute, and timestamps stop": func(p *sent) {
			p.Seq -= packets
			p.Time -= uint32(packets) * 960
		},
		"reload": func(p *sent) {
			p.SSRC = 8
			p.Seq += 40_000
			p.Time += 1_234_567_890
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			alice := voice(1, 20)
			left := stream{
				codec:   "opus",
				samples: alice,
				jitter:  15 * time.Millisecond,
				at: func(_ int, p *sent) bool {
					if p.said >= to {
						change(p)
					}
					return p.said < from || p.said >= to
				},
			}
			right := stream{codec: "opus", samples: voice(2, 20)}
			p := spoolOf(t, nil, left.packets(t, calls.CallerSide), right.packets(t, calls.CalleeSide))
			got, _, rate := rendered(t, p)

			clear(alice[from*16000/time.Second : to*16000/time.Second])
			checkVoice(t, "left", got, rate, alice, 100*time.Millisecond)
			begin, end := from+150*time.Millisecond, to-50*time.Millisecond
			if !isSilent(got[begin*16000/time.Second : end*16000/time.Second]) {
				t.Error("the interruption is not silent")
			}
		})
	}
}

// TestDrift shows that senders whose clocks run too fast or too slow stay aligned with the server's
// clock, and thus with each other. The clocks in this test are far worse than real clocks, so that
// the drift becomes audible within minutes. TestTimeline uses realistic clocks for hours.
func TestDrift(t *testing.T) {
	const ppm = 600
	alice, bob := voice(1, 180), voice(2, 180)
	left := stream{codec: "opus", samples: alice, ppm: ppm, jitter: 20 * time.Millisecond, reports: true}
	right := stream{codec: "PCMU", samples: bob, ppm: -ppm, jitter: 20 * time.Millisecond, seed: 1}
	p := spoolOf(t, nil, left.packets(t, calls.CallerSide), right.packets(t, calls.CalleeSide))
	gotLeft, gotRight, rate := rendered(t, p)

	checkVoice(t, "left", gotLeft, rate, warp(alice, ppm), 70*time.Millisecond)
	checkVoice(t, "right", gotRight, rate, warp(bob, -ppm), 70*time.Millisecond)
}

// warp returns the audio as a clock that is too fast by ppm would play it.
func warp(samples []int16, ppm float64) []int16 {
	out := make([]int16, int(float64(len(samples))/(1+ppm/1e6)))
	for i := range out {
		out[i] = samples[min(int(float64(i)*(1+ppm/1e6)), len(samples)-1)]
	}
	return out
}
