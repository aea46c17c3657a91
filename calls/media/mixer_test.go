package media

import (
	"bytes"
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

// TestMixSilence shows that silent members share a stream. A member that begins to speak or stops
// hears no difference in the others' voices.
func TestMixSilence(t *testing.T) {
	h := newHall(t)
	a, b, c := h.enter(sdp.G722, 440), h.enter(sdp.G722, 0), h.enter(sdp.G722, 0)
	h.run(2*alone, nil)
	if a.leg.voice.Load().shared {
		t.Error("the stream of the member that speaks is shared")
	}
	if !b.leg.voice.Load().shared {
		t.Error("the stream of the first silent member is not shared")
	}
	if !c.leg.voice.Load().shared {
		t.Error("the stream of the second silent member is not shared")
	}

	h.forget()
	b.pitch = 1000
	h.run(alone, nil)
	if b.leg.voice.Load().shared {
		t.Error("the stream of a member that begins to speak is shared")
	}

	b.pitch = 0
	h.run(3*alone, nil)
	if !b.leg.voice.Load().shared {
		t.Error("the stream of a member that is silent again is not shared")
	}

	h.wantHears(b, a)
	if noise := b.noise(440); noise > 300 {
		t.Errorf("the changes of encoders are heard with an amplitude of %.0f, want at most 300", noise)
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
		t.Errorf("with 5 %% of the packets lost, a tone has an amplitude of %.0f, want at least 5000", got)
	}
}

// TestMixLossAtVolume shows that each frame that replaces a lost one is quieter than the frame before,
// even if the member is amplified.
func TestMixLossAtVolume(t *testing.T) {
	h := newHall(t)
	a := h.enter(sdp.G722, 440)
	h.mixer.SetVolumes(a.leg, 20, 0)
	h.run(30, nil)

	v := a.leg.voice.Load()
	concealed := 0
	for concealed < 3 {
		before := energy(v.pcm[:])
		h.run(1, func(int) bool { return true })
		if v.lost == 0 {
			continue // the frame had arrived before
		}
		concealed++
		if now := energy(v.pcm[:]); now >= before {
			t.Errorf("replacement %d has the energy %d, want less than %d", concealed, now, before)
		}
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
			t.Errorf("the tone of %.0f Hz has an amplitude of %.0f, want at least 1000", pitch, got)
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

// A deaf is a tap that discards all packets.
type deaf struct{}

func (deaf) Packet(calls.Packet)                 {}
func (deaf) Clock(calls.Kind, uint32, time.Time) {}

// TestMixRecord shows that a recording contains all members. Its timestamps also advance while the
// room is empty.
func TestMixRecord(t *testing.T) {
	h := newHall(t)
	a, b := h.enter(sdp.G722, 440), h.enter(sdp.PCMU, 1000)
	h.run(30, nil)
	var recorded tape
	h.mixer.Record(&recorded)
	h.run(50, nil)

	recorded.hears(t, 440, 1000)
	first := recorded.packets[0]
	for i, p := range recorded.packets {
		if p.Codec != sdp.G722 {
			t.Fatalf("packet %d of the recording is in %s, want G722", i, p.Codec)
		}
		if want := first.Seq + uint16(i); p.Seq != want {
			t.Fatalf("packet %d of the recording has the number %d, want %d", i, p.Seq, want)
		}
		if want := first.Time + uint32(i)*frameBytes; p.Time != want {
			t.Fatalf("packet %d of the recording has the time %d, want %d", i, p.Time, want)
		}
	}

	last := recorded.packets[len(recorded.packets)-1]
	h.mixer.Remove(a.leg)
	h.mixer.Remove(b.leg)
	h.run(2, nil)
	h.mixer.Add(a.leg)
	h.run(1, nil)
	next := recorded.packets[len(recorded.packets)-1]
	if next.Seq != last.Seq+1 {
		t.Errorf("after an empty room, the next packet has the number %d, want %d", next.Seq, last.Seq+1)
	}
	if want := last.Time + 3*frameBytes; next.Time != want {
		t.Errorf("after two frames of an empty room, the next packet has the time %d, want %d", next.Time, want)
	}
	h.mixer.Record(nil)
	if count := len(recorded.packets); count != 51 {
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

	listener := talker{codec: sdp.Codec{Name: sdp.G722}}
	for _, p := range t.packets {
		samples := make([]int16, d.Samples(len(p.Payload)))
		d.Decode(samples, p.Payload)
		listener.heard = append(listener.heard, samples...)
	}

	for _, pitch := range pitches {
		if got := listener.loudness(pitch); math.Abs(got-6000) > 600 {
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

	var packets [][]byte
	const runs = 100
	for range runs + 1 {
		for _, c := range h.members {
			packets = append(packets, c.packet(t))
		}
	}

	next := 0
	allocations := testing.AllocsPerRun(runs, func() {
		for _, c := range h.members {
			h.worker.receiveDatagram(packets[next], c.at, h.now)
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
	put := func(n int) { // each byte of frame n is the lowest byte of n
		p.put(sdp.G722, uint32(n)*frameBytes, bytes.Repeat([]byte{byte(n)}, frameBytes))
	}
	take := func() (frame byte, kind audioKind) {
		_, kind = p.take(&b)
		return b[0], kind
	}

	if _, kind := take(); kind != noAudio {
		t.Errorf("before the first packet, take returns %v, want noAudio", kind)
	}

	for _, n := range []int{1, 3, 2, 4} { // the second and the third are swapped
		put(n)
	}
	for range 2 { // the delay
		take()
	}
	for _, want := range []byte{1, 2, 3, 4} {
		got, kind := take()
		if kind != wholeFrame {
			t.Errorf("instead of frame %d, take returns %v, want wholeFrame", want, kind)
		}
		if got != want {
			t.Errorf("take returns frame %d, want %d", got, want)
		}
	}

	for range maxStall {
		if _, kind := take(); kind != lateAudio {
			t.Errorf("while a client is silent, take returns %v, want lateAudio", kind)
		}
	}

	take()
	if _, kind := take(); kind != noAudio {
		t.Errorf("after half a second, take returns %v, want noAudio", kind)
	}

	// At first, packets come six frames early. Later, they come just in time.
	const end = 1500
	for n := 100; n < 108; n++ {
		put(n)
	}
	for n := 108; n < end; n++ {
		take()
		put(n)
	}
	const oldest, newest = (end - 3) & 0xff, (end - 2) & 0xff
	if got, _ := take(); got != oldest && got != newest {
		t.Errorf("after a while, take returns frame %d, want %d or %d", got, oldest, newest)
	}
}

// BenchmarkRoom measures a room in which every member sends audio, while all members or one in ten
// speak. It reports the CPU time per frame, and how many members one core can carry.
func BenchmarkRoom(b *testing.B) {
	b.Run("one in ten speaks", func(b *testing.B) { benchmarkRoom(b, 10) })
	b.Run("all speak", func(b *testing.B) { benchmarkRoom(b, 1) })
}

// benchmarkRoom measures a room in which one member in each group of the given size speaks.
func benchmarkRoom(b *testing.B, group int) {
	const members, warmup = 150, 50
	h := newHall(b)
	for i := range members {
		pitch := 0.0
		if i%group == 0 {
			pitch = 300 + float64(10*i)
		}
		h.enter(sdp.G722, pitch)
	}

	frames := make([][][]byte, b.N+warmup) // the packets of each frame
	for i := range frames {
		for _, c := range h.members {
			frames[i] = append(frames[i], c.packet(b))
		}
	}

	mixFrame := func(packets [][]byte) {
		for i, c := range h.members {
			h.worker.receiveDatagram(packets[i], c.at, h.now)
		}
		h.now = h.now.Add(frameTime)
		h.mixer.mix(h.now)
	}

	for _, packets := range frames[:warmup] {
		mixFrame(packets)
	}

	b.ResetTimer()
	b.ReportAllocs()
	cpu := processorTime()
	for _, packets := range frames[warmup:] {
		mixFrame(packets)
	}
	used := processorTime() - cpu
	b.ReportMetric(float64(used)/float64(time.Millisecond)/float64(b.N), "cpu-ms/frame")
	b.ReportMetric(members*float64(frameTime)*float64(b.N)/float64(used), "members/core")
}
