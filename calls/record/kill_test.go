package record

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/recordings"
)

// killedCalls is how many calls are being recorded when their process is killed.
const killedCalls = 20

// packetTime is how much audio a packet contains. A tick that the machine delays or skips leaves no
// gap in the audio, so the number of ticks determines how long the audio lasts, not the clock.
const packetTime = 20 * time.Millisecond

// TestMain lets the test binary record calls in a separate process, which the test kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SELVAGE_TEST_SPOOLS"); dir != "" {
		recordUntilKilled(dir, os.Getenv("SELVAGE_TEST_PROJECT"))
	}
	os.Exit(m.Run())
}

// recordUntilKilled reads the Sids of announced recordings from stdin, and records their calls
// until it is killed. Once three seconds have passed and at most the last second is not on disk, it
// prints at each tick the length of the audio on disk. After 30 seconds, it prints this even if the
// disk is slower.
func recordUntilKilled(dir, project string) {
	s, err := Open(Config{Dir: dir})
	if err != nil {
		panic(err)
	}
	var open []calls.Recording
	for in := bufio.NewScanner(os.Stdin); len(open) < killedCalls && in.Scan(); {
		r, err := s.Start(context.Background(), calls.RecordedCall{Sid: in.Text(), Project: project, CallID: in.Text()})
		if err != nil {
			panic(err)
		}
		open = append(open, r)
	}

	began := time.Now()
	var passed []time.Time // when all taps had the packets of each tick
	ticker := time.NewTicker(packetTime)
	for i := 0; ; i++ {
		now := <-ticker.C
		for _, r := range open {
			p := r.(*spool)
			for side := range p.taps {
				packet := audio(p, i)
				packet.Arrived, packet.Payload = now, make([]byte, 160)
				packet.Payload[0] = 0x20
				r.Tap(calls.Side(side)).Packet(packet)
			}
		}

		passed = append(passed, time.Now())
		lag, lasted := s.Stats().Lag, time.Since(began)
		tooEarly := lasted < 3*time.Second
		tooSlow := lag > time.Second && lasted < 30*time.Second
		if tooEarly || tooSlow {
			continue
		}

		onDisk := time.Now().Add(-lag)
		written, _ := slices.BinarySearchFunc(passed, onDisk, time.Time.Compare)
		if written > 0 {
			fmt.Println(time.Duration(written) * packetTime)
		}
	}
}

// TestKill kills a process that is recording twenty calls. Each recording must contain all audio
// that was on disk, which normally is all but the last second.
func TestKill(t *testing.T) {
	w := newWorld(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "SELVAGE_TEST_SPOOLS="+w.dir.Name(), "SELVAGE_TEST_PROJECT="+w.project)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}

	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := child.Start(); err != nil {
		t.Fatal(err)
	}

	var sids []string
	for i := range killedCalls {
		c := w.call(0)
		c.CallID = fmt.Sprint("call-", i)
		sid, err := w.announce(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		sids = append(sids, sid)
		fmt.Fprintln(in, sid)
	}

	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	lasted, err := time.ParseDuration(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed

	w.recover(t)
	for _, sid := range sids {
		rec := w.find(t, sid)
		if rec.Status != recordings.Completed {
			t.Errorf("recording %s is %s, want completed", sid[:8], rec.Status)
		}
		if rec.ErrorCode != recordings.Incomplete {
			t.Errorf("recording %s has the error code %q, want %s", sid[:8], rec.ErrorCode, recordings.Incomplete)
		}
		if rec.Duration() < lasted {
			t.Errorf("recording %s lasts %v, want at least %v", sid[:8], rec.Duration(), lasted)
		}
	}
	w.wantSpools(t, 0)
}
