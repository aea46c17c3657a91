package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
)

// manyCalls is the number of calls between two parties that one core should be able to carry.
const manyCalls = 200

// A talk is a measurement of many simultaneous calls. Times are in milliseconds.
type talk struct {
	Calls    int     `json:"calls"`
	Setup    float64 `json:"setup_ms"` // CPU time of the server for a leg, until it has its keys
	KiB      float64 `json:"kib"`      // memory of the server for a leg
	StartP50 float64 `json:"start_p50_ms"`
	StartMax float64 `json:"start_max_ms"` // the longest time until sound could pass both ways
	Flows    []flow  `json:"flows"`
}

// A flow is a measurement of the packets of all calls, or of some of them.
type flow struct {
	Legs   int     `json:"legs"`
	Sent   int64   `json:"sent"`
	Lost   int64   `json:"lost"`
	OfCore float64 `json:"of_cpu"` // fraction of a core
	P50    float64 `json:"delay_p50_ms"`
	P99    float64 `json:"delay_p99_ms"` // delay from the sender through the server to the receiver
}

// A side is one of the two sides of a call.
type side struct {
	call   *phone.Call
	heard  atomic.Int64
	mu     sync.Mutex
	delays []time.Duration
}

// hear counts a packet and records its delay. The payload contains the time at which the packet was
// sent.
func (s *side) hear(payload []byte) {
	took := time.Since(epoch) - time.Duration(binary.BigEndian.Uint64(payload))
	s.heard.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delays = append(s.delays, took)
}

// epoch is the time from which the times in packets are counted.
var epoch = time.Now()

// talking sets up many calls on a separate server. It sends audio through half of them, and then
// through all of them.
func talking(p *harness.Program, s settings, prefix []string) *talk {
	const name = "calls"
	if !s.only.MatchString(name) {
		return nil
	}
	p.Logf("%d %s", manyCalls, name)
	server := harness.StartConfig(p, harness.Config{Prefix: prefix, Env: []string{procs}})
	project := server.NewProject(p)
	people := make([]*phone.Phone, 2*manyCalls)
	sides := make([]*side, 2*manyCalls)
	for i := range people {
		sat := project.NewSAT(p, fmt.Sprint("person", i))
		sides[i] = &side{}
		people[i] = phone.Connect(p, server, sat.Token, "").Light(sides[i].hear).Online()
	}

	before, resident := cpu(p, server.PID()), residentMiB(p, server.PID())
	took := dialAll(people, sides)
	t := &talk{
		Calls:    manyCalls,
		StartP50: milliseconds(took[len(took)/2]),
		StartMax: milliseconds(took[len(took)-1]),
		Setup:    milliseconds(cpu(p, server.PID())-before) / float64(len(people)),
		KiB:      (residentMiB(p, server.PID()) - resident) * 1024 / float64(len(people)),
	}
	for _, some := range [][]*side{sides[:manyCalls], sides} {
		t.Flows = append(t.Flows, measureFlow(p, s, server.PID(), some))
	}
	return t
}

// dialAll sets up a call between each pair of people, several at a time. It returns how long each
// call took to set up, sorted.
func dialAll(people []*phone.Phone, sides []*side) []time.Duration {
	const workers = 4
	took := make([]time.Duration, manyCalls)
	var next atomic.Int64
	var work sync.WaitGroup
	for range workers {
		work.Go(func() {
			for i := int(next.Add(1)) - 1; i < manyCalls; i = int(next.Add(1)) - 1 {
				began := time.Now()
				alice, bob := phone.Talk(people[2*i], people[2*i+1], fmt.Sprint("/private/person", 2*i+1))
				alice.WaitConnected()
				bob.WaitConnected()
				took[i] = time.Since(began)
				sides[2*i].call, sides[2*i+1].call = alice, bob
			}
		})
	}

	work.Wait()
	slices.Sort(took)
	return took
}

// measureFlow makes all sides speak at the same time, with fifty packets a second each.
func measureFlow(p *harness.Program, s settings, pid int, sides []*side) flow {
	speakAll(sides, time.Second) // warms up
	time.Sleep(drain)
	for _, one := range sides {
		one.heard.Store(0)
		one.delays = make([]time.Duration, 0, phone.PerSecond*int(5*s.length/time.Second))
	}

	before, began := cpu(p, pid), time.Now()
	f := flow{Legs: len(sides), Sent: speakAll(sides, 4*s.length)}
	f.OfCore = float64(cpu(p, pid)-before) / float64(time.Since(began))
	time.Sleep(drain)

	var delays []time.Duration
	f.Lost = f.Sent
	for _, one := range sides {
		f.Lost -= one.heard.Load()
		one.mu.Lock()
		delays = append(delays, one.delays...)
		one.mu.Unlock()
	}
	if slices.Sort(delays); len(delays) > 0 {
		f.P50, f.P99 = milliseconds(delays[len(delays)/2]), milliseconds(delays[len(delays)*99/100])
	}
	return f
}

// drain is how long to wait for packets in transit.
const drain = 500 * time.Millisecond

// speakAll sends packets as large as those of Opus from each side, evenly spread over the time
// length. It returns the number of packets.
func speakAll(sides []*side, length time.Duration) (sent int64) {
	const size = 80
	rate := int64(len(sides) * phone.PerSecond)
	rest := strings.Repeat("o", size-8)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < length; <-tick.C {
		for due := int64(time.Since(began)) * rate / int64(time.Second); sent < due; sent++ {
			now := binary.BigEndian.AppendUint64(nil, uint64(time.Since(epoch)))
			sides[sent%int64(len(sides))].call.Say(string(now) + rest)
		}
	}
	return sent
}

// print prints the measurements of calls.
func (t *talk) print(w io.Writer) {
	fmt.Fprintf(w, "\n%d calls between two parties: %.2f CPU ms and %.0f KiB for a leg, "+
		"%.0f ms to start (at most %.0f)\n",
		t.Calls, t.Setup, t.KiB, t.StartP50, t.StartMax)
	for _, f := range t.Flows {
		fmt.Fprintf(w, "%d legs that send audio: %.0f %% of a core, "+
			"%d of %d packets lost, delay p50 %.2f ms, p99 %.2f ms\n",
			f.Legs, 100*f.OfCore, f.Lost, f.Sent, f.P50, f.P99)
	}
}
