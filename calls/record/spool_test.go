package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// TestSpool shows that a spool contains exactly what the taps received, in the same order.
func TestSpool(t *testing.T) {
	p := newTestSpool(t)
	p.Tap(calls.CallerSide).Packet(audio(p, 1))
	p.Tap(calls.CalleeSide).Packet(audio(p, 2))
	p.Tap(calls.CallerSide).Clock(calls.Audio, 160, time.UnixMicro(5))

	video := audio(p, 3)
	video.Kind = calls.Video
	digit := audio(p, 4)
	digit.Codec = "telephone-event"
	empty := audio(p, 5)
	empty.Payload = nil
	for _, packet := range []calls.Packet{video, digit, empty} {
		p.Tap(calls.CallerSide).Packet(packet)
	}

	p.write()
	p.Pause(true)
	p.Tap(calls.CallerSide).Packet(audio(p, 6))
	p.Resume()
	p.Resume()
	p.Tap(calls.CallerSide).Packet(audio(p, 7))
	p.Stop()
	p.Stop()
	p.Pause(false)
	p.Tap(calls.CallerSide).Packet(audio(p, 8))
	p.write()

	entries, err := readAll(p.file)
	if err != nil {
		t.Fatal(err)
	}

	var got string
	for _, e := range entries {
		got += fmt.Sprintln(e.kind, e.side, e.codec, e.seq, e.rtp, e.wall, e.skip, len(e.payload))
	}

	want := `2 0 3 1 160 0 false 20
2 1 3 2 320 0 false 20
3 0 0 0 160 5 false 0
4 0 0 0 0 0 true 0
5 0 0 0 0 0 false 0
2 0 3 7 1120 0 false 20
7 0 0 0 0 0 false 0
`
	if got != want {
		t.Errorf("the spool has\n%swant\n%s", got, want)
	}
}

// TestTornTail cuts a spool off at each byte, and corrupts each byte. If the byte belongs to the
// header, reading fails. Otherwise, reading ends without an error at the last block before the
// byte.
func TestTornTail(t *testing.T) {
	p := newTestSpool(t)
	ends := []int64{p.offset} // ends of blocks
	counts := []int{0}        // entries up to each block
	for i := range 8 {
		for range i + 1 {
			counts = append(counts[:i+1], counts[len(counts)-1]+1)
			p.Tap(calls.CallerSide).Packet(audio(p, i))
		}
		if !p.write() {
			t.Fatal("the spool was not written")
		}
		ends = append(ends, p.offset)
	}

	whole, err := os.ReadFile(filepath.Join(p.owner.dir.Name(), p.call.Sid+extension))
	if err != nil {
		t.Fatal(err)
	}

	check := func(damage string, at int, damaged []byte) {
		entries, err := readAll(bytes.NewReader(damaged))
		if int64(at) < ends[0] {
			want := errNoSpool
			if damage == "a different byte" && at >= len(anyMagic) && at < len(magic) {
				want = errLaterSpool
			}
			if !errors.Is(err, want) {
				t.Errorf("%s at byte %d: error %v, want %v", damage, at, err, want)
			}
			return
		}
		if err != nil {
			t.Errorf("%s at byte %d: %v, want no error", damage, at, err)
			return
		}

		want := 0
		for i, end := range ends {
			if int64(at) >= end {
				want = counts[i]
			}
		}
		if len(entries) != want {
			t.Errorf("%s at byte %d: the spool has %d entries, want %d", damage, at, len(entries), want)
		}
	}

	for at := range len(whole) + 1 {
		check("cut", at, whole[:at])
		check("zeros", at, append(bytes.Clone(whole[:at]), make([]byte, len(whole)-at)...))
		if at < len(whole) {
			changed := bytes.Clone(whole)
			changed[at] ^= 0x40
			check("a different byte", at, changed)
		}
	}
}

// TestStaleTail shows that blocks from an earlier attempt are ignored after a shorter attempt.
func TestStaleTail(t *testing.T) {
	p := newTestSpool(t)
	start, sum := p.offset, p.sum
	for i := range 10 {
		p.Tap(calls.CallerSide).Packet(audio(p, 1))
		p.Tap(calls.CallerSide).Packet(audio(p, i))
		p.write()
	}
	p.offset, p.sum = start, sum
	p.Tap(calls.CallerSide).Packet(audio(p, 3))
	p.Tap(calls.CallerSide).Packet(audio(p, 4))
	p.write()
	entries, err := readAll(p.file)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 {
		t.Errorf("the spool has %d entries, want the 2 of the shorter attempt", len(entries))
	}
}

// TestFullDisk shows that a full disk causes packets to be dropped only after the buffer is full.
// The spool records how many packets were dropped.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	p := newTestSpool(t)
	file := p.file
	p.file = full

	const packets = 20_000
	for i := range packets {
		p.Tap(calls.Side(i % 2)).Packet(audio(p, i))
		if i%1000 == 0 && p.write() {
			t.Fatal("writing to a full disk succeeds")
		}
	}

	if n := len(p.open) + len(p.sealed); n > 2*maxBuffer+blockHead {
		t.Errorf("%d bytes wait to be written, want at most %d", n, 2*maxBuffer+blockHead)
	}
	p.file = file
	if !p.write() {
		t.Fatal("the spool was not written after the disk had room again")
	}

	p.Tap(calls.CallerSide).Packet(audio(p, packets))
	p.Stop()
	p.write()

	entries, err := readAll(file)
	if err != nil {
		t.Fatal(err)
	}

	kept, lost := 0, 0
	for _, e := range entries {
		switch e.kind {
		case packetKind:
			kept++
		case lostKind:
			lost += int(binary.LittleEndian.Uint32(e.payload))
		}
	}

	if lost == 0 {
		t.Error("the spool records no lost packets, want some")
	}
	if kept+lost != packets+1 {
		t.Errorf("the spool accounts for %d kept and %d lost packets, want %d together", kept, lost, packets+1)
	}
	if got := p.owner.Stats().Lost; got != uint64(lost) {
		t.Errorf("Stats counts %d lost packets, want the %d of the spool", got, lost)
	}

	plan, err := survey(file)
	if err != nil {
		t.Fatal(err)
	}
	if plan.whole {
		t.Error("survey reports a complete recording, want an incomplete one")
	}
}

// TestLag shows that the metrics contain the age of the oldest audio that is not on disk.
func TestLag(t *testing.T) {
	p := newTestSpool(t)
	p.owner.spools[p.Sid()] = p
	if lag := p.owner.Stats().Lag; lag > time.Minute {
		t.Errorf("the lag of a new recording is %v, want at most a minute", lag)
	}
	p.durable.Store(time.Now().Add(-time.Hour).UnixNano())
	if lag := p.owner.Stats().Lag; lag < time.Hour {
		t.Errorf("the lag is %v after an hour in which nothing was written, want an hour", lag)
	}

	go p.run()
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); p.owner.Stats().Lag >= time.Hour; <-tick.C {
		if time.Now().After(end) {
			t.Fatal("the lag does not decrease although the disk works")
		}
	}
	p.Stop()
	<-p.done
}

// TestLowDisk shows that recordings leave some space on their disk free. A recording begins only if
// the disk has enough space, and drops packets while the disk has too little. Packets stored
// earlier are rendered.
func TestLowDisk(t *testing.T) {
	const never = 1 << 62
	w := newWorld(t)
	c := w.call(4 * time.Second)
	p := w.start(t, c)
	speak(p, 0, 50)
	w.minFree.Store(never)
	p.measureDisk()
	speak(p, 50, 100)
	w.minFree.Store(1)
	p.measureDisk()
	speak(p, 100, 150)

	w.minFree.Store(never)
	other := w.call(0)
	other.CallID = "d"
	if _, err := w.Start(t.Context(), other); !errors.Is(err, problem.Unavailable) {
		t.Errorf("Start on a disk without room: %v, want %v", err, problem.Unavailable)
	}
	p.measureDisk()
	p.Stop()
	<-p.done
	if err := w.renders.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}

	if got := w.find(t, p.Sid()).ErrorCode; got != recordings.Incomplete {
		t.Errorf("the error code is %q, want %q", got, recordings.Incomplete)
	}
	if got := w.Stats().Lost; got != 100 {
		t.Errorf("%d packets are lost, want the 100 of the second without space", got)
	}
	samples := w.samples(t, p.Sid())
	for second, want := range []bool{false, true, false} {
		middle := samples[second*16000+4000 : second*16000+12000]
		if got := isSilent(middle); got != want {
			t.Errorf("second %d is silent: %v, want %v", second, got, want)
		}
	}
}

// TestFlood shows that the file is limited in size if a client sends too much.
func TestFlood(t *testing.T) {
	p := newTestSpool(t)
	packet := audio(p, 0)
	packet.Payload = make([]byte, 1200)
	for i := range 60 * 1000 { // a thousand packets per second
		packet.Arrived = p.call.Started.Add(time.Duration(i) * time.Millisecond)
		p.Tap(calls.CallerSide).Packet(packet)
		p.Tap(calls.CalleeSide).Packet(audio(p, i/20))
		if i%100 == 0 {
			p.write()
		}
	}

	p.write()
	if most := int64(maxBurst + 2*60*maxRate); p.offset > most {
		t.Errorf("a minute takes %d bytes, want at most %d", p.offset, most)
	}
}

// TestTapAllocatesNothing shows that taps allocate no memory when they receive a packet.
func TestTapAllocatesNothing(t *testing.T) {
	p := newTestSpool(t)
	packet := audio(p, 0)
	i := 0
	allocs := testing.AllocsPerRun(10_000, func() {
		if i++; i%100 == 0 {
			p.write()
		}
		packet.Arrived = packet.Arrived.Add(20 * time.Millisecond)
		p.Tap(calls.CallerSide).Packet(packet)
	})
	if allocs != 0 {
		t.Errorf("a packet costs %v allocations, want none", allocs)
	}
}

// BenchmarkTap measures the cost of a packet of a G.711 call, from the tap to the file.
func BenchmarkTap(b *testing.B) {
	p := newTestSpool(b)
	packet := audio(p, 0)
	packet.Payload = make([]byte, 160)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%25 == 0 {
			p.write()
		}
		packet.Arrived = packet.Arrived.Add(20 * time.Millisecond)
		p.Tap(calls.CallerSide).Packet(packet)
	}
}
