package wav

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParseRaw(t *testing.T) {
	tests := []struct {
		kind, want string // codec, Hz, channels, frames in 990 bytes
		err        error
	}{
		{".ulaw", "mulaw 8000 1 990", nil},
		{"UL", "mulaw 8000 1 990", nil},
		{".PCMU", "mulaw 8000 1 990", nil},
		{".alaw", "alaw 8000 1 990", nil},
		{".g722", "g722 16000 1 1980", nil},
		{".gsm", "gsm 8000 1 4800", nil},
		{".sln", "pcm_s16le 8000 1 495", nil},
		{".sln44", "pcm_s16le 44100 1 495", nil},
		{".sln192", "pcm_s16le 192000 1 495", nil},
		{".raw", "pcm_s16le 8000 1 495", nil},
		{".r16", "pcm_s16le 16000 1 495", nil},
		{"audio/basic", "mulaw 8000 1 990", nil},
		{"audio/PCMU; rate=16000; channels=2", "mulaw 16000 2 495", nil},
		{"audio/G722;rate=8000", "g722 16000 1 1980", nil},
		{"audio/GSM", "gsm 8000 1 4800", nil},
		{"audio/L16;rate=16000;channels=2", "pcm_s16be 16000 2 247", nil},
		{"audio/x-sln;channels=2", "pcm_s16le 8000 2 247", nil},
		{"audio/L24;rate=48000", "pcm_s24be 48000 1 330", nil},
		{"audio/L16", "", ErrBroken},
		{"audio/L16;rate=fast", "", ErrBroken},
		{"audio/L16;rate=-8000", "", ErrBroken},
		{"audio/L16;rate=8000;channels=0", "", ErrBroken},
		{"audio/L16;rate=8000;channels=99", "", ErrBroken},
		{"audio/L16;rate=99999999999999999999", "", ErrBroken},
		{"audio/wav", "", ErrNotWAV},
		{"application/octet-stream", "", ErrNotWAV},
		{".wav", "", ErrNotWAV},
		{".", "", ErrNotWAV},
		{"", "", ErrNotWAV},
	}

	for _, tt := range tests {
		f, err := ParseRaw(tt.kind, strings.NewReader(strings.Repeat("\xd0", 990)), 990)
		got := ""
		if err == nil {
			got = fmt.Sprint(f.Codec, " ", f.SampleRate, " ", f.Channels, " ", f.Frames)
		}
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("ParseRaw(%q) = %q, %v, want %q, %v", tt.kind, got, err, tt.want, tt.err)
		}
		if err != nil {
			continue
		}

		if again, err := Headerless(f.Codec, f.SampleRate, f.Channels, 990); err != nil ||
			fmt.Sprint(again) != fmt.Sprint(f) {
			t.Errorf("Headerless of %q = %+v, %v, want %+v", tt.kind, again, err, f)
		}
	}
}

func TestParseRawLooksAtGSM(t *testing.T) {
	if _, err := ParseRaw(".gsm", strings.NewReader(strings.Repeat("\x42", 990)), 990); !errors.Is(err, ErrBroken) {
		t.Errorf("ParseRaw of audio that is not GSM: %v, want %v", err, ErrBroken)
	}
	f, err := ParseRaw(".gsm", strings.NewReader(strings.Repeat("\xd0", 50)), 50)
	if err != nil || f.Frames != 160 || len(f.Repairs) != 1 {
		t.Errorf("ParseRaw of a frame and a half = %d frames, repairs %q, %v, want 160 and one", f.Frames,
			f.Repairs, err)
	}
}
