package main

import (
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage/selvage/recordings/wav"
	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
)

// roomMembers is the number of members of the measured room. The goal for members per core is the
// same number (docs/performance.md).
const roomMembers = 150

// A conference is the result of measuring a room in which everybody sends G.722.
type conference struct {
	Members int       `json:"members"`
	Flows   []hearing `json:"flows"`
}

// A hearing is the result of one measurement, in which some of the members speak and the others
// send silence.
type hearing struct {
	Speaking int     `json:"speaking"`
	Sent     int64   `json:"sent"`
	Heard    int64   `json:"heard"`  // packets that all members together received
	OfCore   float64 `json:"of_cpu"` // CPU time divided by elapsed time
}

// measureRoom connects roomMembers light phones to a room of a separate server. It measures the
// room while one member in ten speaks, and then while all speak. It returns nil if s does not
// select this measurement.
func measureRoom(p *harness.Program, s settings, prefix []string) *conference {
	const name = "rooms"
	if !s.only.MatchString(name) {
		return nil
	}
	p.Logf("%s, %d members", name, roomMembers)
	server := harness.StartConfig(p, harness.Config{Prefix: prefix, Env: []string{procs}})
	project := server.NewProject(p)
	project.Post(p, "/api/fabric/resources/conference_rooms", project.Basic(),
		harness.JSON(map[string]any{"name": "hall", "max_members": 2 * roomMembers})).Want(p, 201)

	var heard atomic.Int64
	members := make([]*phone.Call, roomMembers)
	for i := range members {
		sat := project.NewSAT(p, fmt.Sprint("member", i))
		who := phone.Connect(p, server, sat.Token, "").Light(func([]byte) { heard.Add(1) }).G722()
		members[i] = who.Dial("/public/hall")
		members[i].WaitAnswered()
		members[i].WaitConnected()
	}

	c := &conference{Members: roomMembers}
	for _, speaking := range []int{roomMembers / 10, roomMembers} {
		confer(p, members, speaking, 2*time.Second) // to warm up
		heard.Store(0)
		before, began := cpu(p, server.PID()), time.Now()
		h := hearing{Speaking: speaking, Sent: confer(p, members, speaking, 4*s.length)}
		h.OfCore = float64(cpu(p, server.PID())-before) / float64(time.Since(began))
		h.Heard = heard.Load()
		c.Flows = append(c.Flows, h)
	}
	return c
}

// confer makes members send audio in real time. The first of them, as many as speaking, send a
// tone, and the others send silence. It returns the number of packets sent.
func confer(p *harness.Program, members []*phone.Call, speaking int, length time.Duration) int64 {
	tone, silence := g722Second(p, 440), g722Second(p, 0)
	soundOf := func(member, frame int) string {
		if member < speaking {
			return tone[frame%len(tone)]
		}
		return silence[frame%len(silence)]
	}

	var sent atomic.Int64
	var all sync.WaitGroup
	const workers = 4
	for w := range workers {
		all.Go(func() {
			tick := time.NewTicker(time.Second / phone.PerSecond)
			defer tick.Stop()

			frames := 0
			for began := time.Now(); time.Since(began) < length; <-tick.C {
				for due := int(time.Since(began) * phone.PerSecond / time.Second); frames < due; frames++ {
					for i := w; i < len(members); i += workers {
						members[i].Say(soundOf(i, frames))
						sent.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	return sent.Load()
}

// g722Second returns one second of a tone as the payloads of its packets. A pitch of 0 means
// silence.
func g722Second(p *harness.Program, pitch float64) []string {
	encoder, err := wav.NewEncoder("g722")
	if err != nil {
		p.Fatalf("encoding a tone: %v", err)
	}

	const rate, samples = 16000, 16000 / phone.PerSecond
	frames := make([]string, phone.PerSecond)
	for n := range frames {
		pcm, payload := make([]int16, samples), make([]byte, samples/2)
		for i := range pcm {
			if pitch > 0 {
				pcm[i] = int16(6000 * math.Sin(2*math.Pi*pitch*float64(n*samples+i)/rate))
			}
		}
		encoder.Encode(payload, pcm)
		frames[n] = string(payload)
	}
	return frames
}

// print prints the measurements of a room.
func (c *conference) print(w io.Writer) {
	fmt.Fprintf(w, "\na room with %d members that send G.722\n", c.Members)
	for _, h := range c.Flows {
		fmt.Fprintf(w, "%d speaking: %.0f %% of a core (%.0f members per core), %d packets sent, %d received\n",
			h.Speaking, 100*h.OfCore, float64(c.Members)/h.OfCore, h.Sent, h.Heard)
	}
}
