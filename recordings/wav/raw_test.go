package wav

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestParseRaw(t *testing.T) {
	tests := []struct {
		kind, want string // codec, Hz, channels, frames in 990 bytes
	}{
		{".ulaw", "mulaw 8000 1 990"},
		{"UL", "mulaw 8000 1 990"},
		{".PCMU", "mulaw 8000 1 990"},
		{".alaw", "alaw 8000 1 990"},
		{".g722", "g722 16000 1 1980"},
		{".gsm", "gsm 8000 1 4800"},
		{".sln", "pcm_s16le 8000 1 495"},
		{".sln44", "pcm_s16le 44100 1 495"},
		{".sln192", "pcm_s16le 192000 1 495"},
		{".raw", "pcm_s16le 8000 1 495"},
		{".r16", "pcm_s16le 16000 1 495"},
		{"audio/basic", "mulaw 8000 1 990"},
		{"audio/PCMU; rate=16000; channels=2", "mulaw 16000 2 495"},
		{"audio/G722;rate=8000", "g722 16000 1 1980"},
		{"audio/GSM", "gsm 8000 1 4800"},
		{"audio/L16;rate=16000;channels=2", "pcm_s16be 16000 2 247"},
		{"audio/x-sln;channels=2", "pcm_s16le 8000 2 247"},
		{"audio/L24;rate=48000", "pcm_s24be 48000 1 330"},
	}

	for _, tt := range tests {
		facts, err := ParseRaw(tt.kind, strings.NewReader(strings.Repeat("\xd0", 990)), 990)
		if err != nil {
			t.Errorf("ParseRaw(%q): %v", tt.kind, err)
			continue
		}
		got := fmt.Sprint(facts.Codec, " ", facts.SampleRate, " ", facts.Channels, " ", facts.Frames)
		if got != tt.want {
			t.Errorf("ParseRaw(%q) = %q, want %q", tt.kind, got, tt.want)
		}

		again, err := Headerless(facts.Codec, facts.SampleRate, facts.Channels, 990)
		if err != nil {
			t.Errorf("Headerless of %q: %v", tt.kind, err)
		}
		if !reflect.DeepEqual(again, facts) {
			t.Errorf("Headerless of %q = %+v, want %+v", tt.kind, again, facts)
		}
	}
}

func TestParseRawRefuses(t *testing.T) {
	for kind, want := range map[string]error{
		"audio/L16":                           ErrBroken, // without a rate
		"audio/L16;rate=fast":                 ErrBroken,
		"audio/L16;rate=-8000":                ErrBroken,
		"audio/L16;rate=8000;channels=0":      ErrBroken,
		"audio/L16;rate=8000;channels=99":     ErrBroken,
		"audio/L16;rate=99999999999999999999": ErrBroken,
		"audio/wav":                           ErrNotWAV,
		"application/octet-stream":            ErrNotWAV,
		".wav":                                ErrNotWAV,
		".":                                   ErrNotWAV,
		"":                                    ErrNotWAV,
	} {
		_, err := ParseRaw(kind, strings.NewReader(strings.Repeat("\xd0", 990)), 990)
		if !errors.Is(err, want) {
			t.Errorf("ParseRaw(%q): %v, want %v", kind, err, want)
		}
	}
}

func TestParseRawLooksAtGSM(t *testing.T) {
	_, err := ParseRaw(".gsm", strings.NewReader(strings.Repeat("\x42", 990)), 990)
	if !errors.Is(err, ErrBroken) {
		t.Errorf("ParseRaw of audio that is not GSM: %v, want %v", err, ErrBroken)
	}

	facts, err := ParseRaw(".gsm", strings.NewReader(strings.Repeat("\xd0", 50)), 50)
	if err != nil {
		t.Fatal(err)
	}
	if facts.Frames != 160 || len(facts.Repairs) != 1 {
		t.Errorf("ParseRaw of a frame and a half = %d frames, repairs %q, want 160 and one repair",
			facts.Frames, facts.Repairs)
	}
}
