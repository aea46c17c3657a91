package record

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/test/servers"
)

// voice returns audio at 16 kHz that resembles a voice. It is a buzz with a random pitch, in
// syllables of random length and loudness. The results for two seeds have little in common.
func voice(seed uint64, seconds int) []int16 {
	random := rand.New(rand.NewPCG(seed, 1))
	samples := make([]int16, 0, seconds*16000)
	for len(samples) < cap(samples) {
		pitch, loud := 90+110*random.Float64(), 9000*random.Float64()
		if random.IntN(3) == 0 {
			loud = 0
		}
		length := 1000 + random.IntN(4000)
		for i := range min(length, cap(samples)-len(samples)) {
			phase := 2 * math.Pi * pitch * float64(i) / 16000
			shape := math.Sin(math.Pi * float64(i) / float64(length))
			v := math.Sin(phase) + 0.5*math.Sin(3*phase) + 0.3*math.Sin(7*phase)
			samples = append(samples, int16(loud*shape*v))
		}
	}
	return samples
}

// encode encodes 16 kHz audio with ffmpeg and returns packets of 20 ms.
func encode(t testing.TB, codec string, samples []int16) [][]byte {
	t.Helper()
	args := map[string]string{
		"opus": "-c:a libopus -b:a 24k -application voip -frame_duration 20 -f ogg",
		"celt": "-c:a libopus -b:a 64k -application lowdelay -ar 48000 -frame_duration 20 -f ogg",
		"G722": "-c:a g722 -f g722",
		"PCMU": "-ar 8000 -f mulaw",
		"PCMA": "-ar 8000 -f alaw",
	}[codec]
	out := ffmpeg(t, samples, strings.Fields(args)...)
	if codec == "opus" || codec == "celt" {
		return oggPackets(t, out)[2:] // after the headers
	}
	return slices.Collect(slices.Chunk(out, 160))
}

// ffmpeg converts 16 kHz audio with the given output options.
func ffmpeg(t testing.TB, samples []int16, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		servers.Missing(t, "the command ffmpeg")
	}

	in := make([]byte, 0, 2*len(samples))
	for _, v := range samples {
		in = binary.LittleEndian.AppendUint16(in, uint16(v))
	}

	input := strings.Fields("-v error -f s16le -ar 16000 -ac 1 -i -")
	command := exec.Command("ffmpeg", slices.Concat(input, args, []string{"-"})...)
	command.Stdin = bytes.NewReader(in)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("ffmpeg: %v: %s", err, complaints.Bytes())
	}
	return out
}

// oggPackets returns the packets of an Ogg stream (RFC 3533).
func oggPackets(t testing.TB, b []byte) (packets [][]byte) {
	t.Helper()
	var packet []byte
	for len(b) > 0 {
		if len(b) < 27 || string(b[:4]) != "OggS" {
			t.Fatal("not an Ogg page")
		}
		sizes := b[27 : 27+int(b[26])]
		b = b[27+len(sizes):]
		for _, size := range sizes {
			packet, b = append(packet, b[:size]...), b[size:]
			if size < 255 {
				packets, packet = append(packets, packet), nil
			}
		}
	}
	return packets
}

// A stream describes what one side sends, and how the network changes it.
type stream struct {
	codec   string // codec for encode
	samples []int16

	ppm       float64       // how much faster the sender's clock runs than the server's, in millionths
	jitter    time.Duration // jitter of packet delays
	loss, dup float64
	first     uint32 // RTP timestamp of the first packet
	seq       uint16
	seed      uint64
	reports   bool

	// at may change a packet before it is sent. If it returns false, the packet is dropped.
	at func(i int, p *sent) bool
}

// A sent is a packet that a side sends.
type sent struct {
	calls.Packet
	said    time.Duration // when the side spoke it, since the start of the recording
	arrives time.Duration
	side    calls.Side
	report  bool // the packet is a sender report
}

// packets returns the packets of a stream as they arrive.
func (s stream) packets(t testing.TB, side calls.Side) (all []sent) {
	t.Helper()
	random := rand.New(rand.NewPCG(s.seed, 2))
	name, clock := s.codec, 8000
	if s.codec == "opus" || s.codec == "celt" {
		name, clock = "opus", 48000
	}
	step := uint32(clock / 50)

	for i, payload := range encode(t, s.codec, s.samples) {
		said := time.Duration(float64(i) * 20e6 / (1 + s.ppm/1e6))
		delay := 40*time.Millisecond + time.Duration(random.ExpFloat64()*float64(s.jitter))
		p := sent{
			said:    said,
			arrives: said + delay,
			side:    side,
			Packet: calls.Packet{
				Kind:    calls.Audio,
				Codec:   name,
				SSRC:    7,
				Seq:     s.seq + uint16(i),
				Time:    s.first + uint32(i)*step,
				Payload: payload,
			},
		}
		if s.at != nil && !s.at(i, &p) || random.Float64() < s.loss {
			continue
		}

		all = append(all, p)
		if random.Float64() < s.dup {
			p.arrives += 30 * time.Millisecond
			all = append(all, p)
		}
		if s.reports && i%250 == 249 {
			p.report = true
			all = append(all, p)
		}
	}
	return all
}

// spoolOf writes a complete spool with the packets of both sides in the order of their arrival. It
// calls between before each packet with the packet's time of arrival.
func spoolOf(t testing.TB, between func(p *spool, at time.Duration), sides ...[]sent) *spool {
	t.Helper()
	packets := slices.Concat(sides...)
	slices.SortStableFunc(packets, func(a, b sent) int { return cmp.Compare(a.arrives, b.arrives) })
	length := packets[len(packets)-1].arrives + 20*time.Millisecond

	p := newSpool(openSpools(t, nil), calls.RecordedCall{
		Sid:     "00000001-sid",
		Project: "p",
		CallID:  "c",
		Started: time.Now().Add(-length),
	})
	if err := p.create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.file.Close() })
	for i := range packets {
		if between != nil {
			between(p, packets[i].arrives)
		}
		feed(p, &packets[i])
		if len(p.open) > maxBuffer/2 && !p.write() {
			t.Fatal("the spool was not written")
		}
	}

	p.stopAt(length) // the test itself may take longer
	if !p.write() {
		t.Fatal("the spool was not written")
	}
	return p
}

// feed passes a packet to the tap of its side.
func feed(p *spool, s *sent) {
	if s.report {
		sender := time.Unix(1_700_000_000, 0).Add(s.said) // a wrong clock that runs at the right speed
		p.Tap(s.side).Clock(calls.Audio, s.Time, sender)
		return
	}
	s.Arrived = p.call.Started.Add(s.arrives)
	p.Tap(s.side).Packet(s.Packet)
}

// rendered returns the channels of the rendered spool.
func rendered(t testing.TB, p *spool) (left, right []int16, rate int) {
	t.Helper()
	plan, err := survey(p.file)
	if err != nil {
		t.Fatal(err)
	}

	m, err := newMixer(p.file, plan)
	if err != nil {
		t.Fatal(err)
	}

	both := make([]int16, 2*m.Frames())
	n, err := m.ReadFrames(both, 0)
	if err != nil {
		t.Fatal(err)
	}
	if int64(n) != m.Frames() {
		t.Fatalf("ReadFrames returned %d frames, want all %d", n, m.Frames())
	}

	for i := 0; i < len(both); i += 2 {
		left, right = append(left, both[i]), append(right, both[i+1])
	}
	return left, right, m.Rate()
}

// slot is the length of one value in an envelope.
const slot = 5 * time.Millisecond

// envelope returns the loudness of audio in each slot.
func envelope(samples []int16, rate int) (loud []float64) {
	n := rate / int(time.Second/slot)
	for piece := range slices.Chunk(samples, n) {
		var sum float64
		for _, v := range piece {
			sum += float64(v) * float64(v)
		}
		loud = append(loud, math.Sqrt(sum/float64(len(piece))))
	}
	return loud
}

// correlate returns the best correlation of two pieces of audio, at most 1. It also returns the
// delay of a after b at which this correlation occurs. It tries delays of up to half a second.
func correlate(a, b []float64) (best float64, behind time.Duration) {
	most := int(500 * time.Millisecond / slot)
	for lag := -most; lag <= most; lag++ {
		x, y := a[max(0, lag):], b[max(0, -lag):]
		n := min(len(x), len(y))
		if c := similarity(x[:n], y[:n]); c > best {
			best, behind = c, time.Duration(lag)*slot
		}
	}
	return best, behind
}

// similarity returns the correlation of two series of numbers.
func similarity(x, y []float64) float64 {
	meanX, meanY := mean(x), mean(y)
	var xx, yy, xy float64
	for i := range x {
		dx, dy := x[i]-meanX, y[i]-meanY
		xx += dx * dx
		yy += dy * dy
		xy += dx * dy
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// checkVoice checks that every ten seconds of a channel contain the wanted voice, misplaced by at most
// the tolerance.
func checkVoice(t *testing.T, channel string, got []int16, rate int, want []int16, tolerance time.Duration) {
	t.Helper()
	const part = 10 * int(time.Second/slot)
	heard, original := envelope(got, rate), envelope(want, 16000)
	for i := 0; i+part <= min(len(heard), len(original)); i += part {
		correlation, behind := correlate(heard[i:i+part], original[i:i+part])
		begin := time.Duration(i) * slot
		if correlation < 0.75 {
			t.Errorf("%s from %v: the correlation is %.2f, want at least 0.75", channel, begin, correlation)
		}
		if abs(behind) > tolerance {
			t.Errorf("%s from %v: the voice is %v late, want at most %v", channel, begin, behind, tolerance)
		}
	}
}
