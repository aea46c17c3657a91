package levels

import "math"

// These rules separate talk from noise, in dB and in slots of 20 ms. A leg begins to talk when it
// is well above its noise for three slots. It continues while it is slightly above the noise.
// Pauses of up to 300 ms count as talk.
const (
	onAbove, offAbove        = 9.0, 5.0     // minimum level above the noise
	onFrom, offFrom          = -50.0, -55.0 // minimum level
	minNoise, maxNoise       = -70.0, -45.0 // limits of the noise level
	slotsToBegin             = 3
	pauseSlots               = 15
	final                    = pauseSlots + 1 // number of slots after which a decision is final
	noiseWindow, windowCount = 50, 6          // slots per window, number of windows: 6 s in all
)

// A voice decides which slots of one leg are talk.
type voice struct {
	power   float64 // power of the current slot, set by the meter
	talking bool
	loud    int    // number of consecutive loud slots, while not talking
	pause   int    // number of slots since the last loud slot, while talking
	history uint32 // one bit for each slot, the newest in the lowest bit

	noise   float64 // estimated level of the noise
	hop     float64 // power of the slots in the current hop
	least   float64 // lowest power of a hop in the current window
	windows [windowCount]float64
	slots   int

	talked int64 // number of slots with talk
}

func newVoice() voice {
	v := voice{noise: maxNoise, least: math.Inf(1)}
	for i := range v.windows {
		v.windows[i] = math.Inf(1)
	}
	return v
}

// step decides whether the current slot is talk.
func (v *voice) step() {
	level := decibels(v.power)
	v.history <<= 1
	if v.talking {
		v.continueTalk(level)
	} else {
		v.beginTalk(level)
	}
	v.learn()
}

// beginTalk begins talk if the current slot is the last of several loud slots.
func (v *voice) beginTalk(level float64) {
	if level < max(v.noise+onAbove, onFrom) {
		v.loud = 0
		return
	}
	v.loud++
	if v.loud == slotsToBegin {
		v.talking, v.loud, v.pause = true, 0, 0
		v.history |= 1<<slotsToBegin - 1
	}
}

// continueTalk ends talk after a long pause. The slots of a shorter pause become talk.
func (v *voice) continueTalk(level float64) {
	if level >= max(v.noise+offAbove, offFrom) {
		v.history |= 1<<(v.pause+1) - 1
		v.pause = 0
		return
	}
	v.pause++
	if v.pause > pauseSlots {
		v.talking = false
	}
}

// learn estimates the noise as the quietest tenth of a second in the last windows.
func (v *voice) learn() {
	v.hop += v.power
	v.slots++
	if v.slots%slotsPerHop != 0 {
		return
	}
	v.least = min(v.least, v.hop/slotsPerHop)
	v.hop = 0
	noise := v.least
	for _, least := range v.windows {
		noise = min(noise, least)
	}
	v.noise = min(max(decibels(noise), minNoise), maxNoise)
	if v.slots%noiseWindow == 0 {
		v.windows[v.slots/noiseWindow%windowCount] = v.least
		v.least = math.Inf(1)
	}
}

// A talk detects talk in all legs of a call.
type talk struct {
	legs    []voice
	slots   int64 // number of slots whose decision is final
	late    int   // number of slots whose decision is not final
	overlap int64 // number of slots in which several legs talk
	silence int64 // number of slots without talk
	quiet   int64 // number of slots since the last talk
	longest int64 // largest value of quiet
	first   int64 // number of the first slot with talk, from 1; 0 without talk
}

// step processes the slot whose power was just set in all legs.
func (t *talk) step() {
	for i := range t.legs {
		t.legs[i].step()
	}
	t.settle()
}

// settle counts the slot whose decision just became final.
func (t *talk) settle() {
	if t.late < final {
		t.late++
		return
	}
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

// end counts the slots whose decision is not final yet.
func (t *talk) end() {
	total := t.slots + int64(t.late)
	for t.slots < total {
		for i := range t.legs {
			t.legs[i].history <<= 1
		}
		t.settle()
	}
}

// facts stores the results in f. seconds is the length of the audio. The samples after the last
// whole slot count only if the whole audio is silent.
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
