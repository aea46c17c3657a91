package media

import "sync"

// The sizes of a playout, in bytes unless noted otherwise. A byte is one tick of the RTP clock, an
// eighth of a millisecond.
const (
	frameBytes   = 160 // 20 ms, the step of a mixer
	playoutBytes = 1 << 12
	startDelay   = 2 * frameBytes  // the initial delay, so that later packets are in time
	maxDelay     = 10 * frameBytes // packets further ahead begin a new stream
	maxStall     = 25              // frames without a packet after which the stream has ended
	trimAfter    = 100             // frames after which a needless delay is reduced
)

// A playout collects the audio of one client until a mixer plays it. It orders the audio by its RTP
// timestamps. The codecs of rooms have one byte for each tick of their clock. Therefore, the buffer
// is a ring of bytes, and packets may have any length up to 100 ms.
//
// The delay grows by a frame whenever no audio is ready to play. It shrinks by a frame if all
// packets of two seconds came earlier than necessary. This also compensates for a client whose
// clock is slower or faster than ours.
type playout struct {
	mu      sync.Mutex
	data    [playoutBytes]byte
	there   [playoutBytes]bool // the bytes of data that have arrived and were not played
	codec   string
	started bool
	next    uint32 // timestamp of the byte to be played next
	newest  uint32 // timestamp after the newest byte
	stalled int    // frames since the last frame with a packet
	minLeft int32  // smallest number of bytes that were left after a frame
	frames  int    // since minLeft was reset
}

// put adds the payload of a packet. It drops packets that arrive too late, or are too long.
func (p *playout) put(codec string, at uint32, payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(payload) > maxDelay/2 {
		return // longer than the packets of browsers and phones
	}
	ahead := int32(at - p.next)
	if !p.started || p.codec != codec || ahead+int32(len(payload)) > maxDelay || ahead < -playoutBytes {
		p.restart(codec, at)
		ahead = int32(at - p.next)
	}
	if ahead < 0 {
		return
	}

	for i, b := range payload {
		j := (at + uint32(i)) % playoutBytes
		p.data[j], p.there[j] = b, true
	}
	if end := at + uint32(len(payload)); int32(end-p.newest) > 0 {
		p.newest = end
	}
}

// restart begins a stream. The parameter at is the timestamp of its first packet.
func (p *playout) restart(codec string, at uint32) {
	clear(p.there[:])
	p.codec, p.started, p.stalled = codec, true, 0
	p.next, p.newest = at-startDelay, at
	p.minLeft, p.frames = maxDelay, 0
}

// audioKind describes the audio that a playout returned.
type audioKind int

const (
	noAudio    audioKind = iota // the client sends no audio
	lateAudio                   // a packet was lost or has not arrived yet
	wholeFrame                  // a whole frame
)

// take copies the next frame to b and returns its codec.
func (p *playout) take(b *[frameBytes]byte) (codec string, what audioKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		return "", noAudio
	}
	if int32(p.newest-p.next) <= 0 { // waiting increases the delay
		if p.stalled++; p.stalled > maxStall {
			p.started = false
		}
		return p.codec, lateAudio
	}

	p.stalled = 0
	what = wholeFrame
	for i := range b {
		j := (p.next + uint32(i)) % playoutBytes
		b[i] = p.data[j]
		if !p.there[j] {
			what = lateAudio
		}
		p.there[j] = false
	}
	p.next += frameBytes
	p.trim()
	return p.codec, what
}

// trim drops a frame after the delay has been longer than necessary for a while.
func (p *playout) trim() {
	p.minLeft = min(p.minLeft, int32(p.newest-p.next))
	if p.frames++; p.frames < trimAfter {
		return
	}
	if p.minLeft > startDelay {
		for i := range uint32(frameBytes) {
			p.there[(p.next+i)%playoutBytes] = false
		}
		p.next += frameBytes
	}
	p.minLeft, p.frames = maxDelay, 0
}
