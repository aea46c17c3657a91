package naming_test

import (
	"testing"
	"time"

	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/naming"
)

// start is the start of the calls in these tests.
var start = time.Date(2026, 11, 20, 10, 11, 12, 0, time.UTC)

func TestPresets(t *testing.T) {
	const uuid = "6f1de2a4-0c5a-4b0c-8f57-3b9b1c7a9e10"
	outbound := recordings.Metadata{
		CallSid:   "1763633472.123",
		From:      "1000",
		To:        "14155550134",
		Direction: "outbound",
		StartTime: start,
	}
	inbound := recordings.Metadata{
		CallSid:   "1763633472.123",
		From:      "+14155550134",
		To:        "1000",
		Direction: "inbound",
		StartTime: start,
	}

	for _, tt := range []struct {
		preset, path string
		want         recordings.Metadata
	}{
		{"fusionpbx", "/recordings/pbx.example.com/archive/2026/Nov/20/" + uuid + ".wav",
			recordings.Metadata{CallSid: uuid}},
		{"fusionpbx", uuid + ".mp3", recordings.Metadata{CallSid: uuid}},

		{"asterisk-monitor", "/monitor/2026/11/20/out-14155550134-1000-20261120-101112-1763633472.123.wav", outbound},
		{"asterisk-monitor", "in-1000-+14155550134-20261120-101112-1763633472.123.wav", inbound},
		{"asterisk-monitor", "1763803200.42.WAV", recordings.Metadata{CallSid: "1763803200.42"}},

		{"rtpengine", "/var/lib/rtpengine/a84b4c76e66710%40pc33.example.com-4f2a17b9c06d31e8-mix.wav",
			recordings.Metadata{CallSid: "a84b4c76e66710@pc33.example.com", Track: "both"}},
		{"rtpengine", "a84b4c76e66710%40pc33-mix.wav",
			recordings.Metadata{CallSid: "a84b4c76e66710@pc33", Track: "both"}},
		{"jambonz", "bucket/2026/11/20/8b7c1d2e.mp3", recordings.Metadata{CallSid: "8b7c1d2e"}},
		{"kazoo", "call_recording_1d2b7c0e.wav", recordings.Metadata{CallSid: "1d2b7c0e"}},
		{"livekit", "out/standup-2026-11-20T101112.ogg",
			recordings.Metadata{ConferenceSid: "standup", StartTime: start}},
	} {
		patterns, err := naming.Preset(tt.preset)
		if err != nil {
			t.Fatal(err)
		}
		var d recordings.Description
		if !patterns.Describe(tt.path, &d) {
			t.Errorf("%s: no pattern matches %q", tt.preset, tt.path)
		}
		if d.Metadata != tt.want {
			t.Errorf("%s: Describe(%q) finds %+v, want %+v", tt.preset, tt.path, d.Metadata, tt.want)
		}
	}
}

func TestPresetWithoutMatch(t *testing.T) {
	patterns, err := naming.Preset("fusionpbx")
	if err != nil {
		t.Fatal(err)
	}
	var d recordings.Description
	if patterns.Describe("greeting.wav", &d) {
		t.Error("Describe = true, want false")
	}
	if d.Metadata != (recordings.Metadata{}) {
		t.Errorf("Describe finds %+v, want nothing", d.Metadata)
	}
}

func TestParse(t *testing.T) {
	p, err := naming.Parse("{from}_{to}/{epoch}.{ext}")
	if err != nil {
		t.Fatal(err)
	}

	d := recordings.Description{Metadata: recordings.Metadata{From: "given"}}
	if !(naming.Patterns{p}).Describe("x/1000_+1555/1763633472.5.wav", &d) {
		t.Error("the pattern does not match")
	}
	want := recordings.Metadata{
		From:      "given",
		To:        "+1555",
		StartTime: time.UnixMilli(1763633472500).UTC(),
	}
	if d.Metadata != want {
		t.Errorf("Describe finds %+v, want %+v", d.Metadata, want)
	}

	for _, bad := range []string{"{nothing}.wav", "{call}-{call}.wav"} {
		if _, err := naming.Parse(bad); err == nil {
			t.Errorf("Parse(%q) succeeds, want an error", bad)
		}
	}

	if _, err := naming.Preset("unknown"); err == nil {
		t.Error("an unknown preset is accepted")
	}
}

func TestReadSidecar(t *testing.T) {
	for _, tt := range []struct {
		text string
		want recordings.Metadata
	}{
		{`{"call_sid":"c","from":"+1","to":"+2","direction":"inbound","start_time":"Fri, 20 Nov 2026 10:11:12 +0000"}`,
			recordings.Metadata{CallSid: "c", From: "+1", To: "+2", Direction: "inbound", StartTime: start}},
		{`{"callSid":"8b7c","callId":"x@y","from":"+1","to":"1000","direction":"outbound","sampleRate":8000}`,
			recordings.Metadata{CallSid: "8b7c", From: "+1", To: "1000", Direction: "outbound"}},
		{`{"egress_id":"EG_1","room_id":"RM_1","room_name":"standup","started_at":1795169472000000000,"files":[]}`,
			recordings.Metadata{ConferenceSid: "standup", StartTime: start}},
		{`{"call_sid":"c","start_time":"Inf"}`, recordings.Metadata{CallSid: "c"}},
		{`{"call_sid":"c","start_time":"NaN"}`, recordings.Metadata{CallSid: "c"}},
		{`{}`, recordings.Metadata{}},
	} {
		var d recordings.Description
		if err := naming.ReadSidecar([]byte(tt.text), &d); err != nil {
			t.Errorf("ReadSidecar(%s): %v", tt.text, err)
		}
		if d.Metadata != tt.want {
			t.Errorf("ReadSidecar(%s) finds %+v, want %+v", tt.text, d.Metadata, tt.want)
		}
	}

	var d recordings.Description
	if err := naming.ReadSidecar([]byte("[]"), &d); err == nil {
		t.Error("a sidecar that is not an object is accepted")
	}
}
