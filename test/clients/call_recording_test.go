package clients

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// callRecord shows that a backend can record a running call, and that both sides are notified. The
// recording is available after the call, with the caller on the left channel.
func callRecord(alice, bob *phone) {
	t, p := alice.T, alice.project
	id := connect(alice, bob, false)
	hear(alice, bob)
	list := p.LaML("/Calls/" + id + "/Recordings")
	asked := time.Now()
	rec := p.Post(t, list, p.Basic(), harness.Form(url.Values{})).Want(t, 201).Object(t)
	began := time.Now()
	for _, f := range []*phone{alice, bob} {
		f.do("until(() => rooms.at(-1)?.recording)", nil)
	}

	alice.do("pass(2)", nil)
	item := list + "/" + fmt.Sprint(rec["sid"])
	move := func(status string) {
		p.Post(t, item, p.Basic(), harness.Form(url.Values{"Status": {status}})).Want(t, 200)
	}

	move("paused")
	move("in-progress")
	least := time.Since(began)
	move("stopped")
	most := time.Since(asked)
	alice.do("until(() => !rooms.at(-1).recording)", nil)
	hear(alice, bob)
	alice.do("call.hangup()", nil)

	harness.Eventually(t, time.Minute, "the recording", func() error {
		if rec = p.Get(t, item, p.Basic()).Want(t, 200).Object(t); rec["status"] != "completed" {
			return fmt.Errorf("the recording's status is %v, want completed", rec["status"])
		}
		return nil
	})
	if rec["call_sid"] != id {
		t.Errorf("the recording names the call %v, want %s", rec["call_sid"], id)
	}
	if got := fmt.Sprint(rec["channels"]); got != "2" {
		t.Errorf("the recording has %s channels, want 2", got)
	}
	media, _ := rec["media"].(map[string]any)
	if media["to"] != bob.address() {
		t.Errorf("the recording's call was to %v, want %s", media["to"], bob.address())
	}

	wav := p.Get(t, p.LaML("/Recordings/"+fmt.Sprint(rec["sid"])+".wav"), p.Basic()).Want(t, 200).Body
	left, right := channels(t, wav)
	wantLength(t, len(left), least, most)
	wantOnly(t, "the caller's channel", left, alice.hz, bob.hz)
	wantOnly(t, "the callee's channel", right, bob.hz, alice.hz)
}

// wantOnly fails the test unless a channel correlates with one tone, and not with a second tone.
// has and lacks are the frequencies of the two tones, in Hz. The correlation with the first tone is
// the median over blocks of samples, because a busy browser sends audio with gaps.
func wantOnly(t *testing.T, what string, samples []float64, has, lacks int) {
	t.Helper()
	var blocks []float64
	for block := range slices.Chunk(samples[:len(samples)/toneBlock*toneBlock], toneBlock) {
		blocks = append(blocks, correlation(block, has))
	}

	if len(blocks) == 0 {
		t.Errorf("%s has only %d samples", what, len(samples))
		return
	}

	slices.Sort(blocks)
	if got := blocks[len(blocks)/2]; got < 0.95 {
		t.Errorf("%s (%d samples) has a correlation of %.3f with %d Hz, want at least 0.95", what,
			len(samples), got, has)
	}
	if got := correlation(samples, lacks); got > 0.05 {
		t.Errorf("%s (%d samples) has a correlation of %.3f with %d Hz, want at most 0.05", what,
			len(samples), got, lacks)
	}
}

// correlation returns how well samples correlate with a tone of any phase, from 0 to 1. The result
// is the square root of the share of the samples' energy that belongs to the tone.
func correlation(samples []float64, hz int) float64 {
	var energy float64
	for _, x := range samples[:len(samples)/toneBlock*toneBlock] {
		energy += x * x
	}
	blocks := float64(len(samples) / toneBlock)
	return math.Sqrt(power(samples, hz) * blocks * toneBlock / max(1, energy))
}

// recordedRate is the sample rate of decoded recordings.
const recordedRate = 16000

// channels decodes a stereo recording with ffmpeg.
func channels(t *testing.T, wav []byte) (left, right []float64) {
	t.Helper()
	cmd := exec.Command("ffmpeg", "-v", "error", "-i", "-", "-ac", "2", "-ar", fmt.Sprint(recordedRate),
		"-f", "s16le", "-")
	cmd.Stdin = strings.NewReader(string(wav))
	pcm, err := cmd.Output()
	if err != nil {
		t.Fatalf("ffmpeg: %v", err)
	}
	for ; len(pcm) >= 4; pcm = pcm[4:] {
		left = append(left, float64(int16(binary.LittleEndian.Uint16(pcm))))
		right = append(right, float64(int16(binary.LittleEndian.Uint16(pcm[2:]))))
	}
	return left, right
}

// wantLength fails the test unless the length of a recording is between least and most, give or
// take 200 ms.
func wantLength(t *testing.T, samples int, least, most time.Duration) {
	t.Helper()
	const off = 200 * time.Millisecond
	if got := time.Duration(samples) * time.Second / recordedRate; got < least-off || got > most+off {
		t.Errorf("the recording lasts %v, want %v to %v", got, least, most)
	}
}

// wantTone fails the test unless a channel contains one tone and not a second one. has and lacks
// are the frequencies of the two tones, in Hz.
func wantTone(t *testing.T, what string, samples []float64, has, lacks int) {
	t.Helper()
	wanted, unwanted := power(samples, has), power(samples, lacks)
	if wanted < 1e4 {
		t.Errorf("%s (%d samples) has the power %.0f at %d Hz, want at least 10000", what, len(samples),
			wanted, has)
	}
	if limit := wanted / 100; unwanted > limit {
		t.Errorf("%s (%d samples) has the power %.0f at %d Hz, want at most %.0f",
			what, len(samples), unwanted, lacks, limit)
	}
}

// toneBlock is the number of samples in a tenth of a second.
const toneBlock = recordedRate / 10

// power returns the mean power of a frequency, computed by Goertzel's algorithm over blocks of a
// tenth of a second.
func power(samples []float64, hz int) float64 {
	const block = toneBlock
	factor := 2 * math.Cos(2*math.Pi*float64(hz)/recordedRate)
	var sum float64
	var blocks int
	for ; len(samples) >= block; samples = samples[block:] {
		var s1, s2 float64
		for _, x := range samples[:block] {
			s1, s2 = x+factor*s1-s2, s1
		}
		sum += (s1*s1 + s2*s2 - factor*s1*s2) / (block * block / 4) / 2
		blocks++
	}
	return sum / float64(max(1, blocks))
}

// callRecordAlways shows that an answered call is recorded without a request if the project records
// all calls.
func callRecordAlways(alice, bob *phone) {
	t, p := alice.T, alice.project
	setting := func(value string) {
		p.Command(t, "", "project", "update", p.ID, "--record-calls", value)
	}
	setting("on")
	id := connect(alice, bob, false)
	for _, f := range []*phone{alice, bob} {
		f.do("until(() => rooms.at(-1)?.recording)", nil)
	}
	setting("off")
	alice.do("call.hangup()", nil)

	harness.Eventually(t, time.Minute, "the recording", func() error {
		var list struct{ Recordings []struct{ Status string } }
		p.Get(t, p.LaML("/Calls/"+id+"/Recordings.json"), p.Basic()).Want(t, 200).Read(t, &list)
		if len(list.Recordings) != 1 || list.Recordings[0].Status != "completed" {
			return fmt.Errorf("the recordings are %v, want one that is completed", list.Recordings)
		}
		return nil
	})
}
