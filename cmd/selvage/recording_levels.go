package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
)

// measured writes something of how a recording sounds, if that is known.
func measured(write func(l *levels.Facts) string) func(recordings.Recording) string {
	return func(r recordings.Recording) string {
		if r.Levels == nil {
			return ""
		}
		return write(r.Levels)
	}
}

func loudness(l *levels.Facts) string {
	if l.Peak == nil {
		return "none: every sample is zero"
	}
	said := []string{fmt.Sprintf("peak %.1f dB", *l.Peak), fmt.Sprintf("RMS %.1f dB", *l.RMS)}
	if l.Loudness != nil {
		said = append([]string{fmt.Sprintf("%.1f LUFS", *l.Loudness)}, said...)
	}
	if l.Clipped > 0 {
		said = append(said, fmt.Sprintf("%.2g%% clipped", l.Clipped*100))
	}
	if math.Abs(l.DCOffset) >= 0.01 {
		said = append(said, fmt.Sprintf("DC offset %.0f%%", l.DCOffset*100))
	}
	return strings.Join(said, ", ")
}

// talk writes who talks for how long, in the order of the channels.
func talk(l *levels.Facts) string {
	if l.FirstSpeech == nil {
		return "nobody talks"
	}
	said := make([]string, len(l.Talk))
	for i, t := range l.Talk {
		said[i] = seconds(t)
	}
	text := strings.Join(said, " and ")
	if l.Overlap != nil && *l.Overlap > 0 {
		text += ", " + seconds(*l.Overlap) + " of it at once"
	}
	return text + ", from " + seconds(*l.FirstSpeech) + " on"
}

func silence(l *levels.Facts) string {
	return fmt.Sprintf("%.0f%% of the time, %s at most", l.SilenceRatio*100, seconds(l.LongestSilence))
}

func seconds(s float64) string { return length(time.Duration(s * float64(time.Second))) }
