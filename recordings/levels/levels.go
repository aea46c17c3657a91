// Package levels measures audio in one pass: how loud it is, who talks and when,
// what is wrong with it, and the outline that a player draws.
//
// What counts as talk is decided by energy alone, leg by leg: music and tones are
// talk, steady noise is not. Levels are in dB below full scale, where a square wave
// of the largest samples has 0 and a sine -3.01; loudness is that of ITU-R
// BS.1770-4. It imports nothing of selvage and keeps the same small amount of memory
// for audio of any length.
package levels

import (
	"errors"
	"fmt"
	"io"
)

// A Source is audio as 16-bit samples of any rate and any number of channels.
type Source interface {
	Rate() int
	Channels() int
	Frames() int64
	// ReadFrames fills dst, interleaved, from a frame on and gives how many frames it
	// filled; io.EOF at the end.
	ReadFrames(dst []int16, at int64) (n int, err error)
}

// Facts are what was measured. A nil is what cannot be said, such as the loudness
// of silence.
type Facts struct {
	Peak     *float64 `json:"peak_db"` // of the largest sample
	RMS      *float64 `json:"rms_db"`  // of all samples
	Loudness *float64 `json:"lufs"`    // integrated; nil also below 400 ms
	Clipped  float64  `json:"clipped"` // share of samples, 0 to 1, in the leg that has most
	DCOffset float64  `json:"dc_offset"`

	Talk           []float64 `json:"talk_s"`            // seconds, of each leg
	Overlap        *float64  `json:"overlap_s"`         // seconds in which two legs talk or more; nil for one leg
	SilenceRatio   float64   `json:"silence_ratio"`     // share of the time, 0 to 1, in which no leg talks
	LongestSilence float64   `json:"longest_silence_s"` // seconds
	FirstSpeech    *float64  `json:"first_speech_s"`    // seconds from the beginning; nil where nobody talks

	Flags Flags `json:"flags"`
}

// chunk is how many frames are read at once.
const chunk = 4096

// Measure reads a source from its start to its end. Of no frames there are no facts.
func Measure(s Source) (Facts, Outline, error) {
	m := newMeter(s.Rate(), s.Channels(), s.Frames())
	buf := make([]int16, chunk*s.Channels())
	var at int64
	for {
		n, err := s.ReadFrames(buf, at)
		m.add(buf[:n*s.Channels()])
		at += int64(n)
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			break
		}
		if err != nil {
			return Facts{}, Outline{}, fmt.Errorf("reading audio at frame %d: %w", at, err)
		}
	}
	facts, outline := m.end()
	return facts, outline, nil
}
