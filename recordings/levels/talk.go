package levels

import "math"

// How talk is told from noise, in dB and in slots of 20 ms. A leg begins to talk
// where it is well above its noise for three slots, and goes on while it is a little
// above; pauses shorter than 300 ms belong to it.
const (
	onAbove, offAbove   = 9.0, 5.0 // the noise
	onFrom, offFrom     = -50.0, -55.0
	leastNoise, atMost  = -70.0, -45.0 // what is louder than that is no noise
	slotsToBegin        = 3
	pauseSlots          = 15
	final               = pauseSlots + 1 // slots back that nothing changes any more
	noiseWindow, window = 50, 6          // slots, windows: noise is the least of the last six seconds
)

// A voice decides for one leg which slots are talk.
type voice struct {
	power   float64 // of the slot, set by the meter
	talking bool
	loud    int    // slots in a row, while not talking
	pause   int    // slots since the last loud one, while talking
	history uint32 // a bit for each slot, the last one lowest

	noise   float64 // its level, as far as it is known
	hop     float64 // power of the slots of the hop under way
	least   float64 // power of a hop in the window under way
	windows [window]float64
	slots   int

	talked int64 // slots
}

func newVoice() voice {
	v := voice{noise: atMost, least: math.Inf(1)}
	for i := range v.windows {
		v.windows[i] = math.Inf(1)
	}
	return v
}

// step decides a slot.
func (v *voice) step() {
	level := decibels(v.power)
	v.history <<= 1
	if !v.talking {
		if level < max(v.noise+onAbove, onFrom) {
			v.loud = 0
		} else if v.loud++; v.loud == slotsToBegin {
			v.talking, v.loud, v.pause = true, 0, 0
			v.history |= 1<<slotsToBegin - 1
		}
	} else if level >= max(v.noise+offAbove, offFrom) {
		v.history |= 1<<(v.pause+1) - 1
		v.pause = 0
	} else if v.pause++; v.pause > pauseSlots {
		v.talking = false
	}
	v.learn()
}

// learn takes the quietest tenth of a second of each window for noise.
func (v *voice) learn() {
	v.hop += v.power
	if v.slots++; v.slots%slotsPerHop != 0 {
		return
	}
	v.least = min(v.least, v.hop/slotsPerHop)
	v.hop = 0
	noise := v.least
	for _, least := range v.windows {
		noise = min(noise, least)
	}
	v.noise = min(max(decibels(noise), leastNoise), atMost)
	if v.slots%noiseWindow == 0 {
		v.windows[v.slots/noiseWindow%window], v.least = v.least, math.Inf(1)
	}
}

// A talk follows all legs.
type talk struct {
	legs    []voice
	slots   int64 // decided for good
	late    int   // slots that are not
	overlap int64
	silence int64 // slots in which nobody talks
	quiet   int64 // of these, how many just now
	longest int64
	first   int64 // the slot in which somebody talked first, from 1; 0 for nobody
}

// step decides the slot whose levels were set.
func (t *talk) step() {
	for i := range t.legs {
		t.legs[i].step()
	}
	t.settle()
}

// settle counts the slot that nothing changes any more.
func (t *talk) settle() {
	if t.late++; t.late <= final {
		return
	}
	t.late--
	t.slots++
	talking := 0
	for i := range t.legs {
		if v := &t.legs[i]; v.history>>final&1 != 0 {
			v.talked++
			talking++
		}
	}
	if talking > 1 {
		t.overlap++
	}
	if talking > 0 {
		t.quiet = 0
		if t.first == 0 {
			t.first = t.slots
		}
		return
	}
	t.silence++
	t.quiet++
	t.longest = max(t.longest, t.quiet)
}

// end counts the slots that were still open.
func (t *talk) end() {
	for all := t.slots + int64(t.late); t.slots < all; {
		for i := range t.legs {
			t.legs[i].history <<= 1
		}
		t.settle()
	}
}

// facts tells what was found in a number of seconds. What is left after the last
// whole slot is like that slot.
func (t *talk) facts(f *Facts, seconds float64) {
	const slot = 1.0 / slotsPerSecond
	f.Talk = make([]float64, len(t.legs))
	for i, v := range t.legs {
		f.Talk[i] = round(float64(v.talked)*slot, 2)
	}
	f.SilenceRatio = 1
	if t.slots > 0 {
		f.SilenceRatio = round(float64(t.silence)/float64(t.slots), 4)
	}
	f.LongestSilence = round(float64(t.longest)*slot, 2)
	if t.silence == t.slots {
		f.LongestSilence = round(seconds, 2)
	}
	if len(t.legs) > 1 {
		overlap := round(float64(t.overlap)*slot, 2)
		f.Overlap = &overlap
	}
	if t.first > 0 {
		first := round(float64(t.first-1)*slot, 2)
		f.FirstSpeech = &first
	}
}
