package media

import (
	"time"

	"github.com/selvage/selvage/calls"
)

// These constants limit what a client sends in one section. Packets beyond the limits are dropped
// and counted.
const (
	audioPackets = 200       // per second; browsers send 50, or 100 with frames of 10 ms
	videoBytes   = 2e6 / 8   // per second
	rtcpPackets  = 50        // per second
	smallPacket  = 250       // a smaller packet of video counts as this many bytes
	burst        = 2         // seconds
	maxBitrate   = 1_800_000 // bit rate of video advertised to clients; lower than the limit
)

// A bucket is a token bucket. The zero value always stays empty.
type bucket struct {
	rate, burst float64 // tokens per second, and the maximum level
	level       float64
	last        time.Time
}

// newBuckets returns the buckets of a section. The bucket for RTP counts packets of audio or bytes
// of video. The bucket for RTCP counts packets.
func newBuckets(kind calls.Kind) (rtp, rtcp bucket) {
	rate := float64(audioPackets)
	if kind == calls.Video {
		rate = videoBytes
	}
	return bucket{rate: rate, burst: burst * rate}, bucket{rate: rtcpPackets, burst: burst * rtcpPackets}
}

// cost returns how many tokens an RTP packet takes.
func cost(kind calls.Kind, size int) float64 {
	if kind == calls.Video {
		return float64(max(size, smallPacket))
	}
	return 1
}

// take removes n tokens. It returns false if the bucket has fewer.
func (b *bucket) take(n float64, now time.Time) bool {
	if b.last.IsZero() {
		b.level, b.last = b.burst, now
	}
	if elapsed := now.Sub(b.last); elapsed > 0 {
		b.level = min(b.burst, b.level+elapsed.Seconds()*b.rate)
		b.last = now
	}
	if b.level < n {
		return false
	}
	b.level -= n
	return true
}
