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

// TestMain lets the test binary record calls in a separate process, which the test kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SELVAGE_TEST_SPOOLS"); dir != "" {
		recordUntilKilled(dir, os.Getenv("SELVAGE_TEST_PROJECT"))
	}
	os.Exit(m.Run())
}

// recordUntilKilled reads the Sids of announced recordings from stdin, and records their calls
// until it is killed. Once three seconds have passed and at most the last second is not on disk, it
// prints at each tick how much is on disk. After 30 seconds it prints even if the disk is slower.
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
	type packets struct{ arrived, passed time.Time }
	var all []packets
	ticker := time.NewTicker(20 * time.Millisecond)
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

		all = append(all, packets{now, time.Now()})
		lag, lasted := s.Stats().Lag, time.Since(began)
		if lasted < 3*time.Second || lag > time.Second && lasted < 30*time.Second {
			continue
		}

		written, _ := slices.BinarySearchFunc(all, time.Now().Add(-lag), func(p packets, end time.Time) int {
			return p.passed.Compare(end)
		})
		if written > 0 {
			fmt.Println(all[written-1].arrived.Sub(began))
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
		if rec.Status != recordings.Completed || rec.ErrorCode != recordings.Incomplete ||
			rec.Duration() < lasted {
			t.Errorf("%s is %s %q and lasts %v, want completed, %s, at least %v", sid[:8], rec.Status,
				rec.ErrorCode, rec.Duration(), recordings.Incomplete, lasted)
		}
	}
	if files := w.spoolFiles(t); len(files) != 0 {
		t.Errorf("after the recovery, the spools %q are left, want none", files)
	}
}
