package media

import (
	"fmt"
	"sync"
	"time"

	"github.com/pion/opus"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings/wav"
)

// A call between two parties keeps its media when it moves into a room. Its clients may continue to
// send Opus, which the engine decodes but cannot encode. These clients hear the room in G.722,
// which their descriptions contain in addition to Opus. Clients that use PCMU or PCMA, for example
// in a call with a phone, keep this codec.

// Adopt implements calls.Mixer.
func (m *mixer) Adopt(media calls.Media) error {
	l, ok := media.(*leg)
	if !ok || l.engine != m.engine {
		return errNotAdoptable
	}
	m.engine.mu.Lock()
	defer m.engine.mu.Unlock()
	s := l.liveSection(calls.Audio, 0)
	if s == nil || l.closed.Load() {
		return errNotAdoptable
	}
	if _, ok := mixableCodec(s.agreed.Codecs); !ok {
		return errNotAdoptable
	}

	v := &voice{leg: l, opus: newTranscoder()}
	v.reroute()
	l.voice.Store(v)
	return nil
}

// errNotAdoptable is returned for media that cannot become a member of a room.
var errNotAdoptable = problem.New(problem.Invalid, "no_media",
	"a side of the call has no audio codec that a room can send: G.722, PCMU or PCMA")

// Release implements calls.Mixer.
func (m *mixer) Release(media calls.Media) {
	l, ok := media.(*leg)
	if !ok {
		return
	}
	m.Remove(media)
	l.voice.Store(nil)
}

// put passes payload, the payload of the packet p, to the mixer. A telephone event goes to v.keys
// instead. Packets in codecs that a mixer cannot decode are dropped.
func (v *voice) put(codec string, p packet, payload []byte, now time.Time) {
	switch codec {
	case sdp.G722, sdp.PCMU, sdp.PCMA:
		v.in.put(codec, p.time, payload)
	case sdp.Events:
		v.keys.put(v.leg, p.ssrc, p.time, payload)
	case sdp.Opus:
		if v.opus == nil {
			return
		}
		v.opus.mu.Lock()
		defer v.opus.mu.Unlock()
		if coded := v.opus.encode(payload, now); len(coded) > 0 {
			v.in.put(sdp.G722, p.time/opusTicks, coded)
		}
	}
}

// opusTicks is the number of ticks of the Opus clock for each byte of a playout. The Opus clock runs
// at 48 kHz (RFC 7587, section 4.1), and the clock of a playout at 8 kHz.
const (
	opusTicks   = 6
	opusRate    = 16000                 // samples per second after decoding
	opusSamples = opusRate * 120 / 1000 // samples of the longest packet (RFC 6716, section 3.2.5)
)

// maxDecoded is the maximum number of seconds of a client's audio that are decoded per second. A
// client with a correct clock sends one second per second. Without a limit, a client could send a long
// packet every five milliseconds, and decoding these packets would hold up the media of all calls.
const maxDecoded = 1.25

// A transcoder converts Opus to G.722, the codec of rooms.
type transcoder struct {
	mu      sync.Mutex // held while the other fields are used
	budget  bucket     // seconds of audio that may be decoded
	decoder *opus.Decoder
	encoder *wav.Encoder
	pcm     [opusSamples]int16
	coded   [opusSamples / 2]byte
}

func newTranscoder() *transcoder {
	return &transcoder{budget: bucket{rate: maxDecoded, burst: burst * maxDecoded}}
}

// encode returns a packet in G.722, which is valid until the next call. If payload cannot be
// decoded, or the client has sent too much audio, the packet is empty. The caller holds mu.
func (t *transcoder) encode(payload []byte, now time.Time) []byte {
	const longest = float64(opusSamples) / opusRate
	if !t.budget.take(longest, now) { // the length of the packet is not known yet
		return nil
	}
	n, err := t.decode(payload)
	if err != nil {
		t.decoder = nil
		return nil
	}
	t.budget.level += longest - float64(n)/opusRate
	coded := t.coded[:n/2]
	t.encoder.Encode(coded, t.pcm[:n])
	return coded
}

// decode decodes a packet to pcm and returns the number of samples. The packet comes from a client,
// which may be hostile, so decode returns a panic of the decoder as an error.
func (t *transcoder) decode(payload []byte) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoding Opus: %v", p)
		}
	}()

	if t.encoder == nil {
		if t.encoder, err = wav.NewEncoder(wavNames[sdp.G722]); err != nil {
			return 0, err
		}
	}
	if t.decoder == nil {
		made, err := opus.NewDecoderWithOutput(opusRate, 1)
		if err != nil {
			return 0, fmt.Errorf("decoding Opus: %w", err)
		}
		t.decoder = &made
	}
	return t.decoder.DecodeToInt16(payload, t.pcm[:])
}
