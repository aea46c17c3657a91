package media

import (
	"time"

	"github.com/selvage/selvage/calls"
)

// Limits of what one section may send. More is dropped and counted.
const (
	audioPackets = 200       // a second; browsers send 50, or 100 with frames of 10 ms
	videoBytes   = 2e6 / 8   // a second
	rtcpPackets  = 50        // a second
	smallPacket  = 250       // a smaller packet of video counts as this many bytes
	burst        = 2         // seconds
	maxBitrate   = 1_800_000 // of video, as clients are told: below the limit
)

// A bucket is a token bucket. Its zero value never lets anything pass.
type bucket struct {
	rate, burst float64 // tokens a second, and at most
	level       float64
	last        time.Time
}

// limits returns the buckets of a section: RTP counts packets of audio or bytes of video,
// RTCP counts packets.
func limits(kind calls.Kind) (rtp, rtcp bucket) {
	rate := float64(audioPackets)
	if kind == calls.Video {
		rate = videoBytes
	}
	return bucket{rate: rate, burst: burst * rate}, bucket{rate: rtcpPackets, burst: burst * rtcpPackets}
}

// cost returns the tokens of an RTP packet.
func cost(kind calls.Kind, size int) float64 {
	if kind == calls.Video {
		return float64(max(size, smallPacket))
	}
	return 1
}

// take removes tokens and reports whether there were enough.
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
