package laml

import "github.com/selvage/selvage/recordings"

// A sound contains the measurements of a recording. If the recording was not measured, all members
// are null.
type sound struct {
	Flags          []string  `json:"flags"`
	PeakDB         *float64  `json:"peak_db"`
	RMSDB          *float64  `json:"rms_db"`
	LUFS           *float64  `json:"lufs"`
	Clipped        *float64  `json:"clipped"`
	DCOffset       *float64  `json:"dc_offset"`
	TalkS          []float64 `json:"talk_s"` // talk time per channel
	OverlapS       *float64  `json:"overlap_s"`
	SilenceRatio   *float64  `json:"silence_ratio"`
	LongestSilence *float64  `json:"longest_silence_s"`
	FirstSpeech    *float64  `json:"first_speech_s"`
}

func soundOf(r recordings.Recording) sound {
	l := r.Levels
	if l == nil {
		return sound{}
	}
	return sound{
		Flags: l.Flags.Names(), PeakDB: l.Peak, RMSDB: l.RMS, LUFS: l.Loudness, Clipped: &l.Clipped,
		DCOffset: &l.DCOffset,
		TalkS:    l.Talk, OverlapS: l.Overlap, SilenceRatio: &l.SilenceRatio, LongestSilence: &l.LongestSilence,
		FirstSpeech: l.FirstSpeech,
	}
}
