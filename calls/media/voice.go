package media

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/recordings/wav"
)

// frameSamples is the number of samples in a frame of a mixer: 20 ms at 16 kHz.
const frameSamples = 320

// mixable lists the codecs that a mixer decodes and encodes, the best first. wavNames contains
// their names in package wav.
var (
	mixable  = []string{sdp.G722, sdp.PCMU, sdp.PCMA}
	wavNames = map[string]string{sdp.G722: "g722", sdp.PCMU: "mulaw", sdp.PCMA: "alaw"}
)

// Silent members are not mixed, so that the noise of many microphones does not add up.
const (
	minEnergy = 100 * 100 // a frame is silent below this mean square, about -50 dBov
	hangover  = 25        // consecutive silent frames after which a member is no longer mixed
	alone     = 50        // consecutive silent frames after which a member gets the common stream
)

// A voice is a member of a mixer, with the audio that its client sends and receives.
type voice struct {
	leg  *leg
	in   playout
	opus *transcoder // nil if the client cannot send Opus
	keys pressed
	out  atomic.Pointer[output] // nil if the client receives no audio

	volumeIn, volumeOut atomic.Int32

	// Only the goroutine of the mixer uses the following fields.
	codec   string // codec of decoder
	decoder *wav.Decoder
	halves  halfRate
	raw     [frameBytes]byte
	narrow  [frameBytes]int16 // a frame at 8 kHz
	lost    int               // consecutive missing frames
	quiet   int               // consecutive quiet frames
	pcm     [frameSamples]int16
	heard   bool // pcm is mixed

	to      *output
	encoder *wav.Encoder
	down    halfRate
	shared  bool // the member receives the common stream of silent members
	at      uint32
	reports int // frames until the next sender report
}

// An output is the section and codec through which a client receives audio. It is immutable.
type output struct {
	to    *section
	codec sdp.Codec
}

// reroute updates the output after a change to the client's sections. The caller holds the engine's
// mu.
func (v *voice) reroute() {
	s := v.leg.liveSection(calls.Audio, 0)
	if s == nil || !s.agreed.Direction.Sends() {
		v.out.Store(nil)
		return
	}
	codec, ok := mixableCodec(s.agreed.Codecs)
	if !ok {
		v.out.Store(nil)
		return
	}
	old := v.out.Load()
	if old == nil || old.to != s || old.codec.Type != codec.Type {
		v.out.Store(&output{s, codec})
	}
}

// mixableCodec returns the first of the codecs that a mixer can encode.
func mixableCodec(codecs []sdp.Codec) (sdp.Codec, bool) {
	i := slices.IndexFunc(codecs, func(c sdp.Codec) bool { return slices.Contains(mixable, c.Name) })
	if i < 0 {
		return sdp.Codec{}, false
	}
	return codecs[i], true
}

// reportFrames is the number of frames between two sender reports: five seconds.
const reportFrames = 250

// listen decodes the client's next frame into pcm, and decides whether the other members hear it.
func (v *voice) listen() {
	codec, kind := v.in.take(&v.raw)
	switch kind {
	case noAudio:
		v.lost = 0
		v.quiet = min(max(v.quiet, hangover)+1, alone)
		v.heard = false
		return
	case lateAudio:
		v.conceal()
	case wholeFrame:
		v.lost = 0
		v.decode(codec)
		amplify(v.pcm[:], v.volumeIn.Load()) // conceal repeats the amplified frame
	}

	v.quiet = min(v.quiet+1, alone)
	if energy(v.pcm[:]) >= minEnergy {
		v.quiet = 0
	}
	v.heard = v.quiet < hangover
}

// decode decodes the frame in raw into pcm.
func (v *voice) decode(codec string) {
	if v.codec != codec {
		d, err := wav.NewDecoder(wavNames[codec])
		if err != nil {
			clear(v.pcm[:]) // put lets only mixable codecs through
			return
		}
		v.codec, v.decoder, v.halves = codec, d, halfRate{}
	}
	if codec == sdp.G722 {
		v.decoder.Decode(v.pcm[:], v.raw[:])
		return
	}
	v.decoder.Decode(v.narrow[:], v.raw[:])
	v.halves.double(&v.pcm, &v.narrow)
}

// conceal replaces a missing frame with the last frame, more quietly each time. After three missing
// frames, it uses silence.
func (v *voice) conceal() {
	v.lost++
	if v.lost > 3 {
		clear(v.pcm[:])
		return
	}
	for i, s := range v.pcm {
		v.pcm[i] = int16(int32(s) * 5 / 8)
	}
}

// energy returns the mean square of samples.
func energy(samples []int16) int64 {
	var sum int64
	for _, s := range samples {
		sum += int64(s) * int64(s)
	}
	return sum / int64(len(samples))
}

// gains contains the factor of each volume, times 2^10. Its index is the volume plus 50.
var gains = func() (table [101]int64) {
	for i := range table {
		table[i] = int64(1024 * math.Pow(2, float64(i-50)/10))
	}
	return table
}()

// amplify changes the volume of samples.
func amplify(samples []int16, volume int32) {
	if volume == 0 {
		return
	}
	gain := gains[min(max(volume, -50), 50)+50]
	for i, s := range samples {
		samples[i] = int16(min(max(int64(s)*gain>>10, -1<<15), 1<<15-1))
	}
}

// ready reports whether the client can receive a frame now. If its section or codec has changed,
// ready starts a new stream.
func (v *voice) ready(now time.Time) bool {
	to := v.out.Load()
	if to == nil || v.leg.closed.Load() {
		return false
	}
	if v.to == to {
		return true
	}
	encoder, err := wav.NewEncoder(wavNames[to.codec.Name])
	if err != nil {
		return false // unreachable: reroute chooses only mixable codecs
	}
	v.to = to
	v.encoder = encoder
	v.down = halfRate{}
	v.at = to.to.out.timestampAt(now, uint32(to.codec.Clock))
	v.reports = 0
	v.shared = false
	return true
}

// sharesStream reports whether the client can receive the stream of all silent members. After
// joining or speaking, a client first gets its own stream, until its encoder has the same state as
// the shared encoder.
func (v *voice) sharesStream() bool {
	return v.to.codec.Name == sdp.G722 && v.quiet == alone && v.volumeOut.Load() == 0
}

// encode encodes a frame for the client.
func (v *voice) encode(b *[frameBytes]byte, pcm *[frameSamples]int16) {
	if v.to.codec.Name == sdp.G722 {
		v.encoder.Encode(b[:], pcm[:])
		return
	}
	v.down.halve(&v.narrow, pcm)
	v.encoder.Encode(b[:], v.narrow[:])
}

// say sends an encoded frame to the client. It also sends a sender report every reportFrames
// frames.
func (v *voice) say(w *worker, b *[frameBytes]byte, now time.Time) {
	out := &v.to.to.out
	at := v.at
	v.at += frameBytes
	if v.leg.deaf.Load() {
		return
	}
	out.playMixed(w, v.to.codec, at, b[:], now)
	v.reports--
	if v.reports <= 0 {
		v.reports = reportFrames
		out.reportMixed(at, now)
	}
}

// playMixed sends a packet of a mixer, unless a tone replaces it.
func (out *sender) playMixed(w *worker, codec sdp.Codec, at uint32, payload []byte, now time.Time) {
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.client.cipher == nil || out.held {
		return
	}
	isFirst := !out.last.started
	p := generatedPacket{payloadType: codec.Type, marker: isFirst, timestamp: at, payload: payload}
	out.sendGenerated(w, p, now)
}

// reportMixed sends a sender report about a stream of a mixer. The client's receiver reports
// then reveal the round-trip time.
func (out *sender) reportMixed(at uint32, now time.Time) {
	out.mu.Lock()
	defer out.mu.Unlock()
	if !out.last.started {
		return
	}
	wall := toNTP(now)
	out.reports.recordSent(uint32(wall>>16), now)
	out.sendRTCPLocked(out.section.leg.engine, &rtcp.SenderReport{
		SSRC:        out.ssrc,
		NTPTime:     wall,
		RTPTime:     at,
		PacketCount: uint32(out.sent),
		OctetCount:  out.octets,
	})
}

// toNTP converts a time to an NTP timestamp (RFC 3550, section 4).
func toNTP(t time.Time) uint64 {
	const since1900 = 2_208_988_800 // seconds from 1900 to 1970
	return uint64(t.Unix()+since1900)<<32 | uint64(t.Nanosecond())<<32/1e9
}
