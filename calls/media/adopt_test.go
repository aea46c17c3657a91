package media

import (
	"bytes"
	"testing"
	"time"
)

// TestTranscodingBound shows that a client cannot make the engine decode much more audio than the
// call lasts. All audio of a client that sends a packet every 20 ms is decoded.
func TestTranscodingBound(t *testing.T) {
	const length = 10 * time.Second
	filling := bytes.Repeat([]byte{0x55}, 40)
	tests := []struct {
		name        string
		payload     []byte
		every       time.Duration
		least, most time.Duration // decoded audio
	}{
		{"an ordinary client", append([]byte{0xf8}, filling...), 20 * time.Millisecond, length, length},
		{"long packets", append([]byte{0x1b, 2}, filling...), 5 * time.Millisecond, length, length + length/2},
		{"invalid packets", []byte{0x1b, 0xff, 1}, 5 * time.Millisecond, 0, 0},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			converter := newTranscoder()
			coded := 0
			for at := time.Duration(0); at < length; at += tt.every {
				coded += len(converter.encode(tt.payload, began.Add(at)))
			}
			decoded := time.Duration(coded) * 20 * time.Millisecond / frameBytes
			if decoded < tt.least || decoded > tt.most {
				t.Errorf("%v of audio are decoded, want %v to %v", decoded, tt.least, tt.most)
			}
		})
	}
}
