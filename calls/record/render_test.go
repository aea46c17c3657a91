package record

import (
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
)

// TestRender shows that each side sounds as it was said and when it was said, in every codec
// and through every kind of network.
func TestRender(t *testing.T) {
	const seconds = 30
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
		{"loss, jitter, reordering, duplicates",
			stream{codec: "opus", loss: 0.03, jitter: 30 * time.Millisecond, dup: 0.02},
			stream{codec: "PCMU", loss: 0.03, jitter: 30 * time.Millisecond, dup: 0.02}, 16000},
		{"numbers and timestamps wrap",
			stream{codec: "opus", first: 1<<32 - 48000*7, seq: 65535 - 350, jitter: 20 * time.Millisecond},
			stream{codec: "G722", first: 1<<32 - 8000*7, seq: 65535 - 350}, 16000},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.left.samples, tt.right.samples, tt.right.seed = alice, bob, 1
			p := spoolOf(t, nil, tt.left.packets(t, calls.CallerSide), tt.right.packets(t, calls.CalleeSide))
			left, right, rate := rendered(t, p)
			if rate != tt.rate {
				t.Errorf("the rate is %d, want %d", rate, tt.rate)
			}
			length := time.Duration(len(left)) * time.Second / time.Duration(rate)
			if abs(length-seconds*time.Second) > 200*time.Millisecond {
				t.Errorf("the length is %v, want %ds", length, seconds)
			}

			sounds(t, "left", left, rate, alice, 100*time.Millisecond)
			sounds(t, "right", right, rate, bob, 100*time.Millisecond)
		})
	}
}
