package media

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/recordings/wav"
)

// TestMix shows that each member hears all others but not itself, in every codec.
func TestMix(t *testing.T) {
	h := newHall(t)
	a, b, c := h.enter(sdp.G722, 440), h.enter(sdp.PCMU, 1000), h.enter(sdp.PCMA, 1600)
	d := h.enter(sdp.G722, 0)
	h.run(30, nil)
	h.forget()
	h.run(50, nil)
	h.wantHears(a, b, c)
	h.wantHears(b, a, c)
	h.wantHears(c, a, b)
	h.wantHears(d, a, b, c)
}

// TestMixSilence shows that silent members share a stream. When a member begins to speak or stops,
// nobody hears a difference.
func TestMixSilence(t *testing.T) {
	h := newHall(t)
	a, b, c := h.enter(sdp.G722, 440), h.enter(sdp.G722, 0), h.enter(sdp.G722, 0)
	h.run(2*alone, nil)
	if !b.leg.voice.Load().shared || !c.leg.voice.Load().shared || a.leg.voice.Load().shared {
		t.Errorf("shared streams: %v, %v and %v, want those of both silent members",
			a.leg.voice.Load().shared, b.leg.voice.Load().shared, c.leg.voice.Load().shared)
	}

	h.forget()
	b.pitch = 1000
	h.run(alone, nil)
	if b.leg.voice.Load().shared {
		t.Errorf("the stream of a member that speaks is shared")
	}

	b.pitch = 0
	h.run(3*alone, nil)
	if !b.leg.voice.Load().shared {
		t.Errorf("the stream of a member that is silent again is not shared")
	}

	h.wantHears(b, a)
	if noise := b.noise(440); noise > 300 {
		t.Errorf("the changes of encoders are heard with an amplitude of %.0f, want 300 at most", noise)
	}
}

// TestMixControls tests mute, deafness, volumes, and removing members.
func TestMixControls(t *testing.T) {
	h := newHall(t)
	a, b := h.enter(sdp.G722, 440), h.enter(sdp.G722, 1000)
	settle := func() {
		h.run(40, nil)
		h.forget()
		h.run(30, nil)
	}
	a.leg.Mute(calls.Audio, true)
	settle()
	h.wantHears(b)
	h.wantHears(a, b)

	a.leg.Mute(calls.Audio, false)
	b.leg.Deafen(true)
	settle()
	h.wantHears(a, b)
	if len(b.heard) > 0 {
		t.Errorf("a deaf member receives %d samples, want none", len(b.heard))
	}

	b.leg.Deafen(false)
	h.mixer.SetVolumes(a.leg, -10, 0)
	settle()
	if got := b.loudness(440); math.Abs(got-3000) > 300 {
		t.Errorf("a tone at half the volume has an amplitude of %.0f, want 3000", got)
	}
	h.mixer.SetVolumes(a.leg, 0, -10)
	settle()
	if got := a.loudness(1000); math.Abs(got-3000) > 300 {
		t.Errorf("at half the volume, a member hears an amplitude of %.0f, want 3000", got)
	}

	h.mixer.Remove(b.leg)
	settle()
	h.wantHears(a)
	if len(b.heard) > 0 {
		t.Errorf("a member that was removed receives %d samples, want none", len(b.heard))
	}
}

// TestMixLoss shows that lost packets are concealed.
func TestMixLoss(t *testing.T) {
	h := newHall(t)
	_, b := h.enter(sdp.G722, 440), h.enter(sdp.G722, 0)
	h.run(30, nil)
	h.forget()
	h.run(200, func(frame int) bool { return frame%20 == 7 })
	if got := b.loudness(440); got < 5000 {
		t.Errorf("with 5 %% of the packets lost, a tone has an amplitude of %.0f, want 5000 at least", got)
	}
}

// TestMixChime shows that all members hear the chime when a member joins.
func TestMixChime(t *testing.T) {
	h := newHall(t)
	a := h.enter(sdp.G722, 0)
	h.run(5, nil)
	h.forget()
	h.mixer.ChimeUp()
	h.run(15, nil)
	for _, pitch := range []float64{660, 880} {
		if got := a.loudness(pitch); got < 1000 {
			t.Errorf("the tone of %.0f Hz has an amplitude of %.0f, want 1000 at least", pitch, got)
		}
	}
}

// A tape is a tap that keeps the packets of a mixer.
type tape struct{ packets []calls.Packet }

func (t *tape) Packet(p calls.Packet) {
	p.Payload = slices.Clone(p.Payload)
	t.packets = append(t.packets, p)
}

func (t *tape) Clock(calls.Kind, uint32, time.Time) {}

// A deaf is a tap that keeps nothing.
type deaf struct{}

func (deaf) Packet(calls.Packet)                 {}
func (deaf) Clock(calls.Kind, uint32, time.Time) {}

// TestMixRecord shows that a recording contains all members. Its timestamps also advance while the
// room is empty.
func TestMixRecord(t *testing.T) {
	h := newHall(t)
	a, b := h.enter(sdp.G722, 440), h.enter(sdp.PCMU, 1000)
	h.run(30, nil)
	var all tape
	h.mixer.Record(&all)
	h.run(50, nil)

	all.hears(t, 440, 1000)
	for i, p := range all.packets {
		first := all.packets[0]
		if p.Seq != first.Seq+uint16(i) || p.Time != first.Time+uint32(i)*frameBytes || p.Codec != sdp.G722 {
			t.Fatalf("packet %d of the recording has number %d and time %d in %s, want the next G722 frame",
				i, p.Seq, p.Time, p.Codec)
		}
	}

	last := all.packets[len(all.packets)-1]
	h.mixer.Remove(a.leg)
	h.mixer.Remove(b.leg)
	h.run(2, nil)
	h.mixer.Add(a.leg)
	h.run(1, nil)
	if next := all.packets[len(all.packets)-1]; next.Seq != last.Seq+1 || next.Time != last.Time+3*frameBytes {
		t.Errorf("after a pause of two frames, the recording is at %d, want %d", next.Time, last.Time+3*frameBytes)
	}
	h.mixer.Record(nil)
	if count := len(all.packets); count != 51 {
		t.Errorf("the recording has %d packets, want 51", count)
	}
}

// hears fails the test unless the tape contains all tones, each as loud as its member sent it.
func (t *tape) hears(test *testing.T, pitches ...float64) {
	test.Helper()
	d, err := wav.NewDecoder("g722")
	if err != nil {
		test.Fatal(err)
	}

	all := talker{codec: sdp.Codec{Name: sdp.G722}}
	for _, p := range t.packets {
		samples := make([]int16, d.Samples(len(p.Payload)))
		d.Decode(samples, p.Payload)
		all.heard = append(all.heard, samples...)
	}

	for _, pitch := range pitches {
		if got := all.loudness(pitch); math.Abs(got-6000) > 600 {
			test.Errorf("the recording has the tone of %.0f Hz with an amplitude of %.0f, want 6000", pitch, got)
		}
	}
}

// TestMixAllocations shows that mixing allocates no memory.
func TestMixAllocations(t *testing.T) {
	h := newHall(t)
	for i := range 5 {
		h.enter([]string{sdp.G722, sdp.PCMU}[i%2], float64(300*i))
	}
	h.mixer.Record(deaf{})
	h.run(10, nil)

	var all [][]byte
	const runs = 100
	for range runs + 1 {
		for _, c := range h.members {
			all = append(all, c.packet(t))
		}
	}

	next := 0
	allocations := testing.AllocsPerRun(runs, func() {
		for _, c := range h.members {
			h.worker.receiveDatagram(all[next], c.at, h.now)
			next++
		}
		h.now = h.now.Add(frameTime)
		h.mixer.mix(h.now)
	})
	if allocations >= 1 {
		t.Errorf("a frame of five members allocates %v times, want none", allocations)
	}
}

// TestPlayout shows that packets are played in order and that the mixer waits for a late client. It
// also shows that a needless delay shrinks.
func TestPlayout(t *testing.T) {
	var p playout
	var b [frameBytes]byte
	packet := func(n int) {
		payload := make([]byte, frameBytes)
		for i := range payload {
			payload[i] = byte(n)
		}
		p.put(sdp.G722, uint32(n)*frameBytes, payload)
	}

	take := func() (int, audioKind) {
		_, what := p.take(&b)
		return int(b[0]), what
	}

	if _, what := take(); what != noAudio {
		t.Errorf("before the first packet, take returns %v, want noAudio", what)
	}

	for _, n := range []int{1, 3, 2, 4} { // the second and the third are swapped
		packet(n)
	}
	for _, want := range []int{-1, -1, 1, 2, 3, 4} { // two frames of delay
		if got, what := take(); want > 0 && (got != want || what != wholeFrame) {
			t.Errorf("take returns frame %d (%v), want %d", got, what, want)
		}
	}

	for range maxStall {
		if _, what := take(); what != lateAudio {
			t.Errorf("while a client is silent, take returns %v, want lateAudio", what)
		}
	}

	take()
	if _, what := take(); what != noAudio {
		t.Errorf("after half a second, take returns %v, want noAudio", what)
	}

	// At first, packets come six frames early. Later, they come just in time.
	for n := 100; n < 108; n++ {
		packet(n)
	}
	for n := 108; n < 1500; n++ {
		take()
		packet(n)
	}
	if got, _ := take(); got != byte2(1500-3) && got != byte2(1500-2) {
		t.Errorf("after a while, take returns frame %d, want %d or the next", got, byte2(1500-3))
	}
}

// byte2 returns the lowest byte of n.
func byte2(n int) int { return n & 0xff }

// BenchmarkRoom measures a room in which every member sends audio, while all members or one in ten
// speak. It reports the CPU time per frame, and how many members one core can carry.
func BenchmarkRoom(b *testing.B) {
	b.Run("one in ten speaks", func(b *testing.B) { benchmarkRoom(b, 10) })
	b.Run("all speak", func(b *testing.B) { benchmarkRoom(b, 1) })
}

// benchmarkRoom measures a room in which one in the given number of members speaks.
func benchmarkRoom(b *testing.B, some int) {
	const members, distinct = 150, 50
	h := newHall(b)
	for i := range members {
		pitch := 0.0
		if i%some == 0 {
			pitch = 300 + float64(10*i)
		}
		h.enter(sdp.G722, pitch)
	}

	all := make([][][]byte, b.N+distinct)
	for i := range all {
		for _, c := range h.members {
			all[i] = append(all[i], c.packet(b))
		}
	}

	frame := func(packets [][]byte) {
		for i, c := range h.members {
			h.worker.receiveDatagram(packets[i], c.at, h.now)
		}
		h.now = h.now.Add(frameTime)
		h.mixer.mix(h.now)
	}

	for _, packets := range all[:distinct] {
		frame(packets)
	}

	b.ResetTimer()
	b.ReportAllocs()
	cpu := processorTime()
	for _, packets := range all[distinct:] {
		frame(packets)
	}
	used := processorTime() - cpu
	b.ReportMetric(float64(used)/float64(time.Millisecond)/float64(b.N), "cpu-ms/frame")
	b.ReportMetric(members*float64(frameTime)*float64(b.N)/float64(used), "members/core")
}
