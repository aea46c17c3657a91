package recordings

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

func TestSecondsAndPrice(t *testing.T) {
	const rate = 2500
	tests := []struct {
		sampleRate int
		frames     int64
		seconds    int64
		price      int64
	}{
		{8000, 0, 0, 0},
		{8000, 1, 1, 2500}, // any audio counts as one second
		{8000, 11_999, 1, 2500},
		{8000, 12_000, 2, 2500}, // rounded to the nearest second
		{8000, 8000 * 60, 60, 2500},
		{8000, 8000*60 + 3999, 60, 2500},
		{8000, 8000 * 61, 61, 5000}, // each started minute counts
		{44100, 44100 * 3600, 3600, 150_000},
		{0, 0, 0, 0},
	}

	for _, tt := range tests {
		r := Recording{SampleRate: tt.sampleRate, Frames: tt.frames}
		if got := r.Seconds(); got != tt.seconds {
			t.Errorf("Seconds of %d frames at %d Hz = %d, want %d", tt.frames, tt.sampleRate, got, tt.seconds)
		}
		if got := price(r.Seconds(), rate); got != tt.price {
			t.Errorf("price(%d, %d) = %d, want %d", r.Seconds(), rate, got, tt.price)
		}
	}
}

func TestIdentity(t *testing.T) {
	call := Metadata{CallSid: "c"}
	tests := []struct {
		d    Description
		want string
	}{
		{Description{}, ""},
		{Description{Metadata: call}, "call:sum:c"},
		{Description{Metadata: Metadata{CallSid: "c", Track: "inbound"}}, "call:sum:c\ninbound"},
		{Description{Sid: "s"}, "sid:sum:s"},
		{Description{Metadata: call, Path: "/a.wav"},
			"path:sum:6567a806e422b2e27429a5f436104282d68d33142dcaea6cc2c39dbddf499ccc"},
		{Description{Metadata: call, Path: "/a.wav", IdempotencyKey: "k"}, "key:k"},
		{Description{Metadata: Metadata{ConferenceSid: "c"}}, "conference:sum:c"},
		{Description{Metadata: Metadata{ConferenceSid: "c", Track: "inbound"}}, "conference:sum:c\ninbound"},
		{Description{Metadata: Metadata{ConferenceSid: "c"}, Sid: "s"}, "sid:sum:s"},
	}

	for _, tt := range tests {
		if got := tt.d.identity("sum"); got != tt.want {
			t.Errorf("identity of %+v = %q, want %q", tt.d, got, tt.want)
		}
	}
}

func TestCheck(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	r := New(Config{Now: func() time.Time { return now }})
	allValid := Metadata{
		CallSid:   "a@b",
		From:      "+1555",
		To:        "sip:ü@x",
		Direction: "inbound",
		Source:    "DialVerb",
		Track:     "both",
		StartTime: now,
	}
	allFaulty := Metadata{
		Direction: "up",
		Source:    "x",
		Track:     "left",
		StartTime: now.Add(48 * time.Hour),
	}
	before1970 := time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		name   string
		d      Description
		params []string
	}{
		{"empty", Description{}, nil},
		{"all valid", Description{Metadata: allValid}, nil},
		{"all faults together", Description{Metadata: allFaulty},
			[]string{"Direction", "Source", "Track", "StartTime"}},
		{"before 1970", Description{Metadata: Metadata{StartTime: before1970}}, []string{"StartTime"}},
		{"call and conference", Description{Metadata: Metadata{CallSid: "a", ConferenceSid: "b"}},
			[]string{"ConferenceSid"}},
		{"long", Description{Metadata: Metadata{CallSid: strings.Repeat("x", 256)}}, []string{"CallSid"}},
		{"control characters", Description{Metadata: Metadata{From: "a\x00b", To: "a\r\nb"},
			SubscriberID: "\x1b[2J"}, []string{"From", "To", "SubscriberId"}},
		{"not UTF-8", Description{Path: "\xff"}, []string{"Path"}},
	}

	for _, tt := range tests {
		var got []string
		for _, p := range problem.All(r.Check(tt.d)) {
			got = append(got, p.Param)
		}
		if !slices.Equal(got, tt.params) {
			t.Errorf("%s: Check reports %q, want %q", tt.name, got, tt.params)
		}
	}
}
