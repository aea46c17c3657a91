// Package levels measures audio in one pass. It measures how loud the audio is, which legs talk and
// when, and which faults the audio has. It also computes the outline that a player draws.
//
// Talk is detected in each leg by energy alone. Therefore, music and tones count as talk, and
// steady noise does not. Levels are in dB relative to full scale. A square wave of the largest
// samples has 0 dB, and a sine has -3.01 dB. Loudness is measured as defined in ITU-R BS.1770-4.
//
// The package imports no other package of selvage. It uses little memory, even for very long audio.
package levels

import (
	"errors"
	"fmt"
	"io"
)

// A Source is audio as 16-bit samples, with any sample rate and number of channels.
type Source interface {
	Rate() int
	Channels() int
	Frames() int64
	// ReadFrames fills dst with interleaved frames, beginning with frame at. It returns the number
	// of frames that it filled, and io.EOF at the end.
	ReadFrames(dst []int16, at int64) (n int, err error)
}

// Facts contains the measurements. A nil field is unknown, such as the loudness of silence.
type Facts struct {
	Peak     *float64 `json:"peak_db"` // level of the largest sample
	RMS      *float64 `json:"rms_db"`  // level of all samples
	Loudness *float64 `json:"lufs"`    // integrated loudness; also nil for less than 400 ms
	Clipped  float64  `json:"clipped"` // fraction of samples, 0 to 1, in the worst leg
	DCOffset float64  `json:"dc_offset"`

	Talk           []float64 `json:"talk_s"`            // seconds per leg
	Overlap        *float64  `json:"overlap_s"`         // seconds with several talking legs; nil if there is one leg
	SilenceRatio   float64   `json:"silence_ratio"`     // fraction of time without talk, 0 to 1
	LongestSilence float64   `json:"longest_silence_s"` // seconds
	FirstSpeech    *float64  `json:"first_speech_s"`    // seconds from the start; nil without talk

	Flags Flags `json:"flags"`
}

// chunk is the number of frames read at a time.
const chunk = 4096

// Measure measures a source from start to end. If it has no frames, all facts are zero or unknown.
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
