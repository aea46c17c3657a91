package media

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings/wav"
)

// frameTime is the interval at which a mixer mixes a frame.
const frameTime = 20 * time.Millisecond

// maxLate is how late a mixer may be before it skips frames.
const maxLate = 5 * frameTime

// A mixer implements calls.Mixer. Every 20 ms, its goroutine decodes, adds and encodes a frame of
// each member, without allocating memory.
//
// A member that has been silent for a second hears the same audio as all other silent members. This
// common stream is encoded once. When a member begins to speak, its own encoder continues from the
// state of the common encoder, so that its client's decoder hears no difference.
type mixer struct {
	engine *Engine
	done   chan struct{}

	mu     sync.Mutex // never held while the engine's mu is taken
	voices []*voice
	closed bool
	sound  []int16 // the rest of the sound that is playing
	played func()  // called when the sound has ended; may be nil
	tap    calls.Tap

	// Only the mixer's goroutine uses the following fields.
	worker  *worker
	sum     [frameSamples]int32
	pcm     [frameSamples]int16
	alone   [frameBytes]byte
	common  [frameBytes]byte
	encoder *wav.Encoder // encodes the common stream
	seq     uint16       // sequence number of the packets for tap
	at      uint32       // timestamp of the packets for tap, which counts all frames
}

var _ calls.Mixer = (*mixer)(nil)

// NewMixer implements calls.Engine.
func (e *Engine) NewMixer() calls.Mixer {
	encoder, err := wav.NewEncoder("g722")
	if err != nil {
		panic(err) // package wav supports G.722
	}
	m := &mixer{engine: e, done: make(chan struct{}), worker: e.newWorker(), encoder: encoder}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		m.closed = true
		return m
	}
	e.group.Go(m.run)
	return m
}

// Answer implements calls.Mixer.
func (m *mixer) Answer(w calls.Watcher, offer string, terms calls.Terms) (calls.Media, string, error) {
	wanted := slices.DeleteFunc(slices.Clone(terms.Codecs), func(name string) bool {
		return !slices.Contains(mixable, name)
	})
	terms.Codecs = slices.Concat(wanted, mixable)
	l := m.engine.newLeg(w, terms)
	l.mixed = true
	l.voice.Store(&voice{leg: l})
	return m.engine.answer(l, offer)
}

// errNotMixable is returned for an offer whose audio cannot be mixed.
var errNotMixable = problem.New(problem.Invalid, "no_media",
	"the offer has no audio codec that a room can mix: G.722, PCMU or PCMA")

// Add implements calls.Mixer.
func (m *mixer) Add(media calls.Media) {
	l, ok := media.(*leg)
	if !ok {
		return
	}
	v := l.voice.Load()
	m.mu.Lock()
	defer m.mu.Unlock()
	if v != nil && !m.closed && !slices.Contains(m.voices, v) {
		m.voices = append(m.voices, v)
	}
}

// Remove implements calls.Mixer.
func (m *mixer) Remove(media calls.Media) {
	l, ok := media.(*leg)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.voices = slices.DeleteFunc(m.voices, func(v *voice) bool { return v.leg == l })
}

// SetVolumes implements calls.Mixer.
func (m *mixer) SetVolumes(media calls.Media, in, out int) {
	l, ok := media.(*leg)
	if !ok {
		return
	}
	if v := l.voice.Load(); v != nil {
		v.volumeIn.Store(int32(in))
		v.volumeOut.Store(int32(out))
	}
}

// Close implements calls.Mixer.
func (m *mixer) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.closed = true
		m.voices = nil
		close(m.done)
	}
}

// run mixes frames until the mixer or the engine is closed.
func (m *mixer) run() {
	next := time.Now().Add(frameTime)
	timer := time.NewTimer(frameTime)
	defer timer.Stop()
	for {
		select {
		case <-m.done:
			return
		case <-m.engine.done:
			return
		case now := <-timer.C:
			m.tryMix(now)
		}

		next = next.Add(frameTime)
		if late := time.Since(next); late > maxLate {
			m.engine.counters.lateFrames.Add(uint64(late / frameTime))
			m.at += frameBytes * uint32(late/frameTime)
			next = time.Now()
		}
		timer.Reset(time.Until(next))
	}
}

// tryMix calls mix. After a panic, the next frame is tried.
func (m *mixer) tryMix(now time.Time) {
	defer func() { m.engine.handlePanic(nil, recover()) }()
	m.mix(now)
}

// mix mixes one frame.
func (m *mixer) mix(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at += frameBytes
	m.voices = slices.DeleteFunc(m.voices, func(v *voice) bool { return v.leg.closed.Load() })
	if len(m.voices) == 0 {
		return
	}

	clear(m.sum[:])
	for _, v := range m.voices {
		v.listen()
		if !v.heard {
			continue
		}
		for i, s := range v.pcm {
			m.sum[i] += int32(s)
		}
	}
	m.addSound()

	// Members who begin to speak continue the common stream from its state before this frame.
	for _, v := range m.voices {
		if v.ready(now) && v.shared && !v.sharesStream() {
			v.encoder.Follow(m.encoder)
			v.shared = false
		}
	}
	for i, s := range m.sum {
		m.pcm[i] = clip(int64(s))
	}
	m.encoder.Encode(m.common[:], m.pcm[:])
	m.record(now)
	for _, v := range m.voices {
		m.play(v, now)
	}
}

// Record implements calls.Mixer.
func (m *mixer) Record(t calls.Tap) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tap = t
}

// record passes the common stream to the tap. The caller holds mu.
func (m *mixer) record(now time.Time) {
	if m.tap == nil {
		return
	}
	m.seq++
	m.tap.Packet(calls.Packet{
		Kind:    calls.Audio,
		Codec:   sdp.G722,
		Seq:     m.seq,
		Time:    m.at,
		Arrived: now,
		Payload: m.common[:],
	})
}

// play sends a frame to the client of a member.
func (m *mixer) play(v *voice, now time.Time) {
	if !v.ready(now) {
		return
	}
	v.shared = v.shared || v.sharesStream()
	if v.shared {
		v.say(m.worker, &m.common, now)
		return
	}

	for i, s := range m.sum {
		if v.heard {
			s -= int32(v.pcm[i])
		}
		m.pcm[i] = clip(int64(s))
	}
	amplify(m.pcm[:], v.volumeOut.Load())
	v.encode(&m.alone, &m.pcm)
	v.say(m.worker, &m.alone, now)
}

// The chimes that a mixer plays when a member joins and leaves.
var (
	risingChime  = newChime(660, 880)
	fallingChime = newChime(880, 660)
)

// newChime returns tones with the given pitches in Hz, each of 0.15 s.
func newChime(pitches ...float64) []int16 {
	const rate, length, fade = 16000, 2400, 320.0
	var samples []int16
	for _, pitch := range pitches {
		for i := range length {
			loud := min(1, float64(i)/fade, float64(length-i)/fade)
			samples = append(samples, int16(3000*loud*math.Sin(2*math.Pi*pitch*float64(i)/rate)))
		}
	}
	return samples
}

// ChimeUp implements calls.Mixer.
func (m *mixer) ChimeUp() { m.Play(risingChime, nil) }

// ChimeDown implements calls.Mixer.
func (m *mixer) ChimeDown() { m.Play(fallingChime, nil) }

// Play implements calls.Mixer.
func (m *mixer) Play(sound []int16, done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sound = sound
	m.played = done
}

// addSound adds the next part of a sound. The caller holds mu.
func (m *mixer) addSound() {
	n := min(len(m.sound), frameSamples)
	for i, s := range m.sound[:n] {
		m.sum[i] += int32(s)
	}
	m.sound = m.sound[n:]
	if len(m.sound) == 0 && m.played != nil {
		go m.played()
		m.played = nil
	}
}
